"""What may not be written: live credentials, and code that a plugin of the note app would run (spec 3.2)."""
from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple, Optional, Pattern, Tuple

from echo_core.errors import ActiveContent, SecretSuspected


class Shape(NamedTuple):
    """One kind of credential. hint: a part every match holds, lower case, so that most texts need no pattern."""

    name: str
    hint: str
    expression: str

    @property
    def pattern(self) -> Pattern[str]:
        """The compiled expression; made by the first text that needs it, since dozens would slow every start."""
        return re.compile(self.expression)


def _shape(name: str, hint: str, pattern: str) -> Shape:
    return Shape(name, hint, rf"(?<![A-Za-z0-9])(?:{pattern})(?![A-Za-z0-9])")


SHAPES: Tuple[Shape, ...] = (
    Shape("private-key", "private key",
          r"-----BEGIN[ A-Z0-9]{0,40} ?PRIVATE KEY(?: BLOCK)?-----\s*[^\s-][\s\S]{15,}"),
    Shape("age-key", "age-secret-key-", r"(?i)AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    _shape("jwt", "eyj", r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{16,}"),
    _shape("aws-access-key", "a", r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z2-7]{16}|(?:AKIA|ASIA)[A-Z0-9]{16}"),
    _shape("anthropic-key", "sk-ant-", r"sk-ant-[a-z]{2,10}[0-9]{2}-[A-Za-z0-9_-]{40,}"),
    _shape("openai-key", "sk-", r"sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}|sk-[A-Za-z0-9]{32,64}"),
    _shape("openrouter-key", "sk-or-", r"sk-or-v1-[0-9a-f]{64}"),
    _shape("github-token", "gh", r"gh[pousr]_[A-Za-z0-9]{36,251}"),
    _shape("github-token", "github_pat_", r"github_pat_[A-Za-z0-9]{20,22}_?[A-Za-z0-9_]{40,80}"),
    _shape("gitlab-token", "gl", r"(?:glpat|gldt|glrt|glptt|glcbt|glft|glsoat|glimt|glagent)-[A-Za-z0-9_.-]{20,64}"),
    _shape("slack-token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{20,}|xoxe\.xox[bp]-[0-9]-[A-Za-z0-9]{100,}"),
    _shape("slack-token", "xapp-", r"xapp-[0-9]-[A-Z0-9]{8,14}-[0-9]{8,16}-[A-Za-z0-9]{32,}"),
    _shape("slack-webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9+/]{40,56}"),
    _shape("google-api-key", "aiza", r"AIza[A-Za-z0-9_-]{35}"),
    _shape("google-oauth-secret", "gocspx-", r"GOCSPX-[A-Za-z0-9_-]{28}"),
    _shape("google-oauth-token", "ya29.", r"ya29\.[A-Za-z0-9_-]{30,}"),
    _shape("stripe-key", "k_", r"(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{16,99}"),
    _shape("stripe-webhook", "whsec_", r"whsec_[A-Za-z0-9+/]{32,}={0,2}"),
    _shape("npm-token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    _shape("pypi-token", "pypi-", r"pypi-AgE[A-Za-z0-9_-]{50,}"),
    _shape("rubygems-key", "rubygems_", r"rubygems_[a-f0-9]{48}"),
    _shape("sendgrid-key", "sg.", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}"),
    _shape("twilio-key", "sk", r"SK[0-9a-f]{32}"),
    _shape("mailgun-key", "key-", r"key-[0-9a-f]{32}"),
    _shape("mailchimp-key", "-us", r"[0-9a-f]{32}-us[0-9]{1,2}"),
    _shape("shopify-token", "shp", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    _shape("digitalocean-token", "_v1_", r"do[opr]_v1_[a-f0-9]{64}"),
    _shape("huggingface-token", "hf_", r"hf_[A-Za-z]{34}|hf_[A-Za-z0-9]{34,40}"),
    _shape("replicate-token", "r8_", r"r8_[A-Za-z0-9]{37,40}"),
    _shape("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{48,56}"),
    _shape("xai-key", "xai-", r"xai-[A-Za-z0-9]{70,90}"),
    _shape("perplexity-key", "pplx-", r"pplx-[A-Za-z0-9]{48}"),
    _shape("databricks-token", "dapi", r"dapi[a-f0-9]{32}(?:-[0-9])?"),
    _shape("linear-key", "lin_api_", r"lin_api_[A-Za-z0-9]{40}"),
    _shape("notion-token", "ntn_", r"ntn_[0-9]{11}[A-Za-z0-9]{35}"),
    _shape("notion-token", "secret_", r"secret_[A-Za-z0-9]{43}"),
    _shape("figma-token", "fig", r"fig[dpou]_?[rh]?_[A-Za-z0-9_-]{40,}"),
    _shape("atlassian-token", "atatt3", r"ATATT3[A-Za-z0-9_=-]{180,}"),
    _shape("telegram-token", ":aa", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,33}"),
    _shape("discord-webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/[0-9]{17,20}/[A-Za-z0-9_-]{60,}"),
    _shape("azure-storage-key", "accountkey=", r"(?i:AccountKey)=[A-Za-z0-9+/]{86}=="),
    _shape("vault-token", "hv", r"hv[sbr]\.[A-Za-z0-9_-]{24,}"),
    _shape("doppler-token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    _shape("planetscale-token", "pscale_", r"pscale_(?:tkn|oauth|pw)_[A-Za-z0-9_.=-]{32,64}"),
    _shape("postman-key", "pmak-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    _shape("grafana-token", "gl", r"glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|glc_[A-Za-z0-9+/]{32,400}={0,3}"),
    _shape("new-relic-key", "nrak-", r"NRAK-[A-Z0-9]{27}"),
    _shape("sentry-token", "sntry", r"sntry[su]_[A-Za-z0-9+/=_-]{40,}"),
    _shape("docker-token", "dckr_pat_", r"dckr_pat_[A-Za-z0-9_-]{27}"),
    _shape("1password-token", "ops_eyj", r"ops_eyJ[A-Za-z0-9+/]{200,}={0,3}"),
    _shape("tailscale-key", "tskey-", r"tskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{16,}"),
)
"""Credential shapes that providers document, each with a mark of its own; ECHO knows no guess by entropy alone."""

_FEWEST_CHARACTERS = 8
_HIDDEN = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_BLOCK_LANGUAGES = (
    "dataviewjs", "js-engine", "datacorejs", "datacorejsx", "datacorets", "datacoretsx", "meta-bind-js-view",
    "templater", "customjs", "quickadd", "jsengine",
)
_TOKENS = (
    "value|name|date|vdate|time|title|field|mvalue|macro|template|global_var|linkcurrent|linksection|filenamecurrent|"
    "foldercurrent|selected|clipboard|random|inject|file"
)
_ACTIVE = (
    ("a Templater command", re.compile(r"<%[\s\S]*?%>")),
    ("a plugin's code block", re.compile(
        r"(?im)^[ \t>*+\-0-9.)]*(?:`{3,}|~{3,})[ \t]*\{?\.?(?:" + "|".join(_BLOCK_LANGUAGES) + r")\b")),
    ("inline DataviewJS", re.compile(r"`\$=")),
    ("a template field", re.compile(r"(?i)\{\{\s*(?:(?:" + _TOKENS + r")\s*(?:[:|<}]|$)|tp[._])")),
)


def find_secret(text: str) -> Optional[str]:
    """The name of the first credential shape in `text`, None when there is none. Placeholders are no credentials."""
    plain = _HIDDEN.sub("", unicodedata.normalize("NFKC", text))
    lower = plain.lower()
    for shape in SHAPES:
        if shape.hint in lower and any(_is_live(match.group()) for match in shape.pattern.finditer(plain)):
            return shape.name
    return None


def refuse_secrets(text: str, field: str) -> None:
    """Raise SecretSuspected with `shape` and `field`, never the value, when `text` holds a live-looking credential."""
    shape = find_secret(text)
    if shape:
        raise SecretSuspected(
            f"{field} holds what looks like a credential ({shape}); nothing was written",
            hint="Leave the secret out, and note where it is kept instead. Only the operator can allow it.",
            shape=shape, field=field,
        )


def refuse_active_content(text: str, field: str) -> None:
    """Raise ActiveContent with `field` when `text` holds code that Templater, Dataview or QuickAdd would run."""
    plain = _HIDDEN.sub("", text)
    for what, pattern in _ACTIVE:
        if pattern.search(plain):
            raise ActiveContent(
                f"{field} holds {what}, which the note app could run; nothing was written",
                hint="Describe it in words, or break the marker up, for example with a space.", field=field,
            )


def _is_live(value: str) -> bool:
    """Whether a value of the right shape is more than a placeholder of few different characters."""
    return len(set(value[-24:].lower())) >= _FEWEST_CHARACTERS
