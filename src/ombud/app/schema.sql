CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE guidelines (
  number INTEGER PRIMARY KEY, version TEXT NOT NULL UNIQUE, markdown TEXT NOT NULL,
  created REAL NOT NULL
) STRICT;
CREATE TABLE people (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
  role TEXT NOT NULL CHECK (role IN ('rater', 'reviewer', 'lead')),
  created REAL NOT NULL, welcomed REAL, gone REAL,
  standing TEXT NOT NULL DEFAULT 'new' CHECK (standing IN ('new', 'passed', 'training')),
  attempt INTEGER NOT NULL DEFAULT 1, finished INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE invitations (
  id INTEGER PRIMARY KEY, person INTEGER NOT NULL REFERENCES people, hash BLOB NOT NULL UNIQUE,
  created REAL NOT NULL, expires REAL NOT NULL, revoked REAL
) STRICT;
CREATE TABLE sessions (
  hash BLOB PRIMARY KEY, person INTEGER NOT NULL REFERENCES people, csrf TEXT NOT NULL,
  created REAL NOT NULL, expires REAL NOT NULL
) STRICT;
CREATE TABLE texts (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL,
  round TEXT NOT NULL CHECK (round IN ('pilot', 'main')),
  text TEXT NOT NULL, topics TEXT NOT NULL, spans TEXT NOT NULL, explicit INTEGER,
  about TEXT NOT NULL,
  place INTEGER NOT NULL, slots INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'open'
    CHECK (state IN ('open', 'complete', 'split', 'settled', 'discarded')),
  UNIQUE (round, name)
) STRICT;
CREATE TABLE counts (
  round TEXT NOT NULL, state TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (round, state)
) STRICT;
CREATE TRIGGER counted AFTER INSERT ON texts BEGIN
  INSERT INTO counts VALUES (new.round, new.state, 1)
    ON CONFLICT (round, state) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER recounted AFTER UPDATE OF state ON texts WHEN old.state != new.state BEGIN
  UPDATE counts SET n = n - 1 WHERE round = old.round AND state = old.state;
  INSERT INTO counts VALUES (new.round, new.state, 1)
    ON CONFLICT (round, state) DO UPDATE SET n = n + 1;
END;
CREATE INDEX texts_next ON texts (round, state, slots, place);
CREATE TABLE assignments (
  id INTEGER PRIMARY KEY, text INTEGER NOT NULL REFERENCES texts,
  person INTEGER NOT NULL REFERENCES people,
  repeat INTEGER NOT NULL DEFAULT 0, attempt INTEGER NOT NULL DEFAULT 1,
  state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'done', 'skipped', 'released')),
  answer TEXT CHECK (answer IN ('not delicate', 'delicate', 'cannot be judged')),
  risk INTEGER CHECK (risk BETWEEN 1 AND 5),
  topics TEXT NOT NULL DEFAULT '[]', target TEXT NOT NULL DEFAULT '',
  guidelines TEXT NOT NULL, began REAL NOT NULL, touched REAL NOT NULL, ended REAL, active REAL,
  shown INTEGER NOT NULL DEFAULT 0, number INTEGER, again INTEGER NOT NULL DEFAULT 0,
  review INTEGER NOT NULL DEFAULT 0, origin TEXT NOT NULL DEFAULT 'app',
  CHECK (state != 'done' OR (answer IS NOT NULL AND (answer = 'delicate') = (risk IS NOT NULL)))
) STRICT;
CREATE UNIQUE INDEX one_open ON assignments (person) WHERE state = 'open';
CREATE UNIQUE INDEX one_rating ON assignments (text, person, repeat, attempt)
  WHERE state IN ('open', 'done');
CREATE INDEX by_person ON assignments (person, state, ended);
CREATE INDEX by_text ON assignments (text, person);
CREATE INDEX repeats ON assignments (person, number) WHERE again = 1;
CREATE INDEX to_review ON assignments (review, state) WHERE review = 1;
CREATE TABLE changes (
  assignment INTEGER NOT NULL REFERENCES assignments, answer TEXT, risk INTEGER, topics TEXT,
  target TEXT, ended REAL, changed REAL NOT NULL
) STRICT;
CREATE TABLE reviews (
  assignment INTEGER PRIMARY KEY REFERENCES assignments,
  person INTEGER NOT NULL REFERENCES people, accepted INTEGER NOT NULL, reason TEXT NOT NULL,
  created REAL NOT NULL, CHECK (accepted = 1 OR reason != '')
) STRICT;
CREATE TABLE adjudications (
  text INTEGER PRIMARY KEY REFERENCES texts, person INTEGER NOT NULL REFERENCES people,
  answer TEXT NOT NULL, risk INTEGER, reason TEXT NOT NULL, created REAL NOT NULL
) STRICT;
CREATE TABLE claims (
  kind TEXT NOT NULL, item INTEGER NOT NULL, person INTEGER NOT NULL, expires REAL NOT NULL,
  PRIMARY KEY (kind, item)
) STRICT;
