"""Moderators: services over HTTP, models on this machine, and the runner that asks services."""

from ombud.http.pace import RunSettings
from ombud.systems.moderators.anthropic import AnthropicMessages
from ombud.systems.moderators.azure import AzureContentSafety as AzureContentSafety
from ombud.systems.moderators.bedrock import BedrockChecks as BedrockChecks
from ombud.systems.moderators.bedrock import BedrockGuardrail as BedrockGuardrail
from ombud.systems.moderators.glin import GlinProfanity
from ombud.systems.moderators.google import GoogleModerateText
from ombud.systems.moderators.hatesonar import HateSonar
from ombud.systems.moderators.http import HttpModerator
from ombud.systems.moderators.huggingface import HuggingFaceModerator
from ombud.systems.moderators.keyword import KeywordModerator
from ombud.systems.moderators.mistral import MistralModeration as MistralModeration
from ombud.systems.moderators.openai import OpenAIModeration
from ombud.systems.moderators.perspective import Perspective
from ombud.systems.moderators.policy import LlamaGuard as LlamaGuard
from ombud.systems.moderators.policy import PolicyModerator
from ombud.systems.moderators.profanity_check import ProfanityCheck
from ombud.systems.moderators.sklearn_pipeline import SklearnModerator
from ombud.systems.quote import Price

__all__ = [
    "AnthropicMessages",
    "GlinProfanity",
    "GoogleModerateText",
    "HateSonar",
    "HttpModerator",
    "HuggingFaceModerator",
    "KeywordModerator",
    "OpenAIModeration",
    "Perspective",
    "PolicyModerator",
    "Price",
    "ProfanityCheck",
    "RunSettings",
    "SklearnModerator",
]
