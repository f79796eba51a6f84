"""Signing in to the back office, and links that work once."""

from __future__ import annotations

from starlette.responses import Response

from largesse.base.errors import NotFound
from largesse.customers.sign_in import Refused
from largesse.web.console.sign_in import new_password
from largesse.web.office.context import OfficeContext


async def sign_in(context: OfficeContext) -> Response:
    """Shows the form for address and password."""
    return context.see("/office") if context.session else context.page("sign_in.html", next=context.query("next"))


async def signed_in(context: OfficeContext) -> Response:
    """Signs in. A wrong address and a wrong password get the same response."""
    form = context.form
    try:
        secret = await context.signing_in.by_password(form["email"].strip(), form["password"], context.origin)
    except Refused:
        form.error("password", context.say("The address or the password is not right."))
        return context.page("sign_in.html", status=403, next=form["next"])
    context.begin(secret)
    return context.see(context.own_path(form["next"]))


async def link(context: OfficeContext) -> Response:
    """Shows what a link does. Opening it does not use it up, because mail scanners open links too."""
    try:
        found = await context.signing_in.look_at(context.request.path_params["secret"], context.origin)
    except NotFound:
        return context.page("link_ended.html", status=404)
    return context.page("office_link.html", link=found)


async def follow(context: OfficeContext) -> Response:
    """Uses a link: signs in, or sets a new password."""
    secret = context.request.path_params["secret"]
    try:
        found = await context.signing_in.look_at(secret, context.origin)
        if found.kind == "sign_in":
            context.begin(await context.signing_in.by_link(secret, context.origin))
            return context.see("/office")
        password = new_password(context, found.email)
        if password is None:
            return context.page("office_link.html", status=422, link=found)
        context.begin(await context.signing_in.by_new_password(secret, password, context.origin))
    except NotFound:
        return context.page("link_ended.html", status=404)
    return context.see("/office")
