"""What browsers are told of a page: forbidden is what is not allowed."""

from __future__ import annotations

from largesse.web.kit.security import content_policy, page_headers


def test_everything_is_forbidden() -> None:
    assert content_policy() == ("default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def test_what_is_allowed_stands_beside_it() -> None:
    assert content_policy(style_src="'self'", form_action="'self'") == (
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    assert content_policy(frame_ancestors="'self'", sandbox="allow-popups") == (
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-popups"
    )


def test_a_page_is_somebodys_own_unless_it_may_be_kept() -> None:
    own, shared = page_headers("x"), page_headers("x", max_age_s=300)
    assert own["Cache-Control"] == "no-store"
    assert own["X-Robots-Tag"] == "noindex, nofollow"
    assert shared["Cache-Control"] == "public, max-age=300"
    assert "X-Robots-Tag" not in shared
    for headers in (own, shared):
        assert headers["Content-Security-Policy"] == "x"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
