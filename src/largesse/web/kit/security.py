"""What browsers are told of a page, so that it can do no more than it needs to."""

from __future__ import annotations

from collections.abc import Mapping

# Of whatever a browser is answered: nothing is taken for what it is not, and nobody hears where somebody came from.
COMMON = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
UNLISTED = {"X-Robots-Tag": "noindex, nofollow"}


def content_policy(*, frame_ancestors: str = "'none'", sandbox: str = "", **sources: str) -> str:
    """A Content-Security-Policy that forbids all but `sources`, given as `style_src="'self'"`.

    `frame_ancestors` says who may frame the page, `sandbox` what a page may do that may do nothing.
    """
    rules = {name.replace("_", "-"): allowed for name, allowed in sources.items()}
    rules = {"default-src": "'none'", **rules}
    for name in ("base-uri", "form-action"):
        rules.setdefault(name, "'none'")
    rules["frame-ancestors"] = frame_ancestors
    if sandbox:
        rules["sandbox"] = sandbox
    return "; ".join(f"{name} {allowed}" for name, allowed in rules.items())


def page_headers(policy: str, *, kept_s: int = 0) -> dict[str, str]:
    """The headers of a page under that policy.

    Anybody may keep it for `kept_s` seconds. Where that is 0 it is somebody's own: no browser keeps it, no search engine lists it.
    """
    of_reader = {"Cache-Control": "no-store", **UNLISTED}
    keeping = {"Cache-Control": f"public, max-age={kept_s}"} if kept_s else of_reader
    return {"Content-Security-Policy": policy, **COMMON, **keeping}


_OF_FORMS = {
    "style_src": "'self'",
    "script_src": "'self'",
    "img_src": "'self'",
    "connect_src": "'self'",
    "form_action": "'self'",
}
# Of pages with forms: their own styles, scripts and pictures, nothing of anybody else's, and nobody frames them.
OF_FORMS: Mapping[str, str] = {
    **page_headers(content_policy(**_OF_FORMS)),
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
}
# Of those that show pages of ours in frames.
OF_FORMS_WITH_FRAMES = {**OF_FORMS, **page_headers(content_policy(**_OF_FORMS, frame_src="'self'"))}


def with_documents(styles: str) -> dict[str, str]:
    """The headers of a page with forms that holds whole documents in frames of its own; `styles` names their sheets."""
    return {**OF_FORMS, **page_headers(content_policy(**{**_OF_FORMS, "style_src": f"'self' {styles}"}))}
