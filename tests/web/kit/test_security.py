"""What browsers are told of a page: forbidden is what is not allowed. Of styles, a policy names those of the document and no others."""

import base64
import hashlib
import re

from largesse.web.kit.security import content_policy, page_headers, with_named_styles


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


MAIL = """<!doctype html>
<html lang="de"><head><style>
.soft { color: red !important }
</style></head>
<body style="margin:0"><p class="soft" style='font-family:"A B";color:blue' dir="auto" hidden>5 &lt; 6 &amp; &#8364;<br>x</p>
<!-- said --><p style="margin:0">z</p><a href="?a=1&amp;b=2" style="">q</a></body></html>
"""


def test_styles_of_tags_become_classes_of_a_sheet_that_the_policy_names() -> None:
    document, policy = with_named_styles(MAIL)
    assert "style=" not in document
    sheets = re.findall(r"<style>(.*?)</style>", document, re.DOTALL)
    assert len(sheets) == 2
    named = [f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in sheets]
    assert policy.split() == named
    assert '<body class="s0">' in document
    assert '<p class="soft s1" dir="auto" hidden>5 &lt; 6 &amp; &#8364;<br>x</p>' in document
    assert '<p class="s0">z</p><a href="?a=1&amp;b=2" class="s2">q</a>' in document
    assert sheets[1] == '.s0{margin:0}.s1{font-family:"A B";color:blue}.s2{}'


def test_sheets_are_named_as_browsers_read_them() -> None:
    assert with_named_styles(MAIL.replace("\n", "\r\n")) == with_named_styles(MAIL)


def test_a_document_without_styles_stays_as_it_is() -> None:
    plain = "<!doctype html>\n<html><head></head><body><!-- a --><p>a &nbsp; b</p></body></html>"
    document, policy = with_named_styles(plain)
    assert document.replace("<style></style>\n", "") == plain
    assert policy.startswith("'sha256-")
    assert with_named_styles("")[0] == ""


def test_no_style_ends_its_sheet() -> None:
    document, _ = with_named_styles("<head></head><p style='a{}</style><script>alert(1)</script>'>")
    assert "<script>" not in document
    assert document.count("</style>") == 1
