"""Requests: after people asked not to see something, is it still shown to them?"""

from ombud.questions.requests.analysis import RequestLeaks
from ombud.questions.requests.answer import requests_answer
from ombud.questions.requests.metric import RequestLeak
from ombud.questions.requests.section import requests_section

__all__ = ["RequestLeak", "RequestLeaks", "requests_answer", "requests_section"]
