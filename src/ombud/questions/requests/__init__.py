"""Requests: after people asked not to see something, is it still shown to them?"""

from ombud.questions.requests.analysis import RequestLeaks
from ombud.questions.requests.metric import RequestLeak
from ombud.questions.requests.report import requests_question
from ombud.questions.requests.section import requests_section

__all__ = ["RequestLeak", "RequestLeaks", "requests_question", "requests_section"]
