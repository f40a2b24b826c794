"""Credentials and code that the note app would run are refused, everyday text is not (spec 3.2)."""

from __future__ import annotations

import random
import string

import pytest
from echo_core.errors import ActiveContent, SecretSuspected
from echo_core.guards import SHAPES, find_secret, refuse_active_content, refuse_secrets

DICE = random.Random(11)


def chars(count: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    """Random characters, the same in every run: no credential stands in this file."""
    return "".join(DICE.choice(alphabet) for _ in range(count))


HEX, UPPER, DIGITS = "0123456789abcdef", string.ascii_uppercase + "234567", string.digits
KEY_MARK = "PRIVATE" + " KEY"
LIVE = [
    ("github-token", "ghp_" + chars(36)),
    ("github-token", "ghs_" + chars(36)),
    ("github-token", "github_pat_" + chars(22) + "_" + chars(59)),
    ("gitlab-token", "glpat-" + chars(20)),
    ("slack-token", f"xoxb-{chars(12, DIGITS)}-{chars(12, DIGITS)}-{chars(24)}"),
    ("slack-webhook", f"https://hooks.slack.com/services/T{chars(8, UPPER)}/B{chars(8, UPPER)}/{chars(24)}"),
    ("aws-access-key", "AKIA" + chars(16, UPPER)),
    ("google-api-key", "AIza" + chars(35)),
    ("google-oauth-secret", "GOCSPX-" + chars(28)),
    ("stripe-key", "sk_live_" + chars(24)),
    ("stripe-key", "rk_test_" + chars(24)),
    ("openai-key", "sk-proj-" + chars(48)),
    ("openai-key", "sk-" + chars(48)),
    ("anthropic-key", "sk-ant-api03-" + chars(93) + "AA"),
    ("npm-token", "npm_" + chars(36)),
    ("pypi-token", "pypi-AgEIcHlwaS5vcmc" + chars(70)),
    ("sendgrid-key", f"SG.{chars(22)}.{chars(43)}"),
    ("twilio-key", "SK" + chars(32, HEX)),
    ("huggingface-token", "hf_" + chars(34, string.ascii_letters)),
    ("digitalocean-token", "dop_v1_" + chars(64, HEX)),
    ("shopify-token", "shpat_" + chars(32, HEX)),
    ("telegram-token", chars(10, DIGITS) + ":AA" + chars(33)),
    ("jwt", f"eyJ{chars(20)}.eyJ{chars(40)}.{chars(43)}"),
    ("private-key", f"-----BEGIN RSA {KEY_MARK}-----\n{chars(64)}\n{chars(64)}\n-----END RSA {KEY_MARK}-----"),
    ("private-key", f"-----BEGIN OPENSSH {KEY_MARK}-----\n{chars(64)}"),
]


@pytest.mark.parametrize(("shape", "value"), LIVE)
def test_a_live_credential_is_refused_by_shape_and_field_without_its_value(shape: str, value: str) -> None:
    """Wherever it stands in the text, the answer says what and where, never the value."""
    for frame in ("{}", "the key is {}.", "KEY={}\n", '"{}"', "`{}`", "密钥是{}。", "(see {})"):
        with pytest.raises(SecretSuspected) as refused:
            refuse_secrets(frame.format(value), "body")
        told = str(refused.value.envelope())
        assert refused.value.data == {"shape": shape, "field": "body"}, frame
        assert value not in told
        assert value[8:24] not in told


@pytest.mark.parametrize("value", ["ghp_" + chars(36), "AKIA" + chars(16, UPPER)])
def test_hiding_a_credential_behind_invisible_or_wide_characters_does_not_help(value: str) -> None:
    """Zero-width characters inside it and full-width letters are seen through."""
    hidden = value[:9] + "\u200b" + value[9:]
    wide = "".join(chr(ord(char) + 0xFEE0) if char != "_" else "＿" for char in value)
    assert find_secret(hidden)
    assert find_secret(wide)


@pytest.mark.parametrize(
    "text",
    [
        "Use sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx as a placeholder.",
        "ghp_****************************************",
        "A GitHub token starts with ghp_ and a Stripe key with sk_live_.",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b fixes it",
        "session 550e8400-e29b-41d4-a716-446655440000",
        "![img](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUA)",
        "The sk-learn-like-estimators-in-our-own-package-for-tests folder",
        f"-----BEGIN {KEY_MARK}-----",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA",
        "task-force-2026-planning-meeting-notes-and-more-words-here",
        "see npm_config_registry and hf_hub_download",
        "Die Bundesdatenschutzbeauftragtenversammlung tagt.",
    ],
)
def test_placeholders_hashes_and_prose_are_no_credentials(text: str) -> None:
    """The guard names shapes of providers, it does not guess by randomness."""
    assert find_secret(text) is None


def test_every_shape_is_reachable_through_its_hint() -> None:
    """The quick check before a pattern never hides a match of it."""
    for shape, value in LIVE:
        known = [each for each in SHAPES if each.name == shape and each.pattern.search(value)]
        assert any(each.hint in value.lower() for each in known), shape


@pytest.mark.parametrize(
    "text",
    [
        "<% tp.file.title %>",
        "Hello <%* await tp.system.prompt('x')\n%> there",
        "```dataviewjs\ndv.pages()\n```",
        "> ~~~ DataviewJS\n> x\n> ~~~",
        "   ```js-engine\nx\n```",
        "count: `$= dv.pages().length`",
        "{{VALUE}}",
        "{{date:YYYY-MM-DD}}",
        "{{ title }}",
        "{{VDATE:due,gg}}",
        "{{MACRO:run}}",
        "<\u200b% tp.x %>",
    ],
)
def test_live_template_and_plugin_code_is_refused_with_its_field(text: str) -> None:
    """Templater, Dataview and QuickAdd would run it when the note is opened."""
    with pytest.raises(ActiveContent) as refused:
        refuse_active_content(text, "body")
    assert refused.value.data["field"] == "body"


@pytest.mark.parametrize(
    "text",
    [
        "5 <% 6 is no operator",
        "```dataview\nLIST\n```",
        "```js\nconst a = `${b}`;\n```",
        "Vue shows {{ user.name }} and LaTeX \\frac{{a}}{{b}}",
        "the dataviewjs plugin is off",
        "100 % sure, see <https://x.example>",
    ],
)
def test_text_that_only_looks_like_code_is_kept(text: str) -> None:
    """Queries, foreign template languages and prose about plugins run nothing."""
    refuse_active_content(text, "body")
