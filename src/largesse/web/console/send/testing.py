"""A test mail: the mail of a gift, sent only to its sender."""

from __future__ import annotations

from dataclasses import replace

from largesse.base import clock
from largesse.base.errors import TooManyRequests
from largesse.base.i18n.templates import text
from largesse.catalogue.pictures import picture_path
from largesse.customers.sign_in_limits import Allowance, spend
from largesse.mail.letter import write
from largesse.mail.service import send_test_mail
from largesse.web.console.context import RequestContext
from largesse.web.console.send.opening import Chosen
from largesse.web.console.send.preview import language_of, letter_of

_OFTEN = text("Too many attempts. Wait a minute and try again.")


def may_try(context: RequestContext) -> bool:
    """Returns whether a test mail can be delivered, to a mail server or to the captured mailbox."""
    return context.services.settings.smtp_url is not None or _is_captured(context)


async def send_test(context: RequestContext, said: Chosen) -> str:
    """Mails the gift to the person, marked as a test, and returns the notice. In test mode the mail is captured, like all mail."""
    person, services = context.person, context.services
    if not may_try(context):
        return context.say("No mail server is set here: nothing was sent.")
    try:
        await spend(services.database, services.vault, Allowance.TESTS, b"%d" % person.person_id)
    except TooManyRequests:
        return context.say(_OFTEN)
    public_url, at = services.settings.public_url_of(person.environment), clock.now().timestamp()
    letter = await letter_of(context, said, language_of(context, said), person.name)
    test = replace(
        letter,
        is_test=True,
        edition=int(at * 1000),  # distinguishes test mails in mail programs
        codes=[replace(code, link=f"{public_url}/claim") for code in letter.codes],
        pictures=public_url,
        picture=public_url + picture_path(said.product.picture) if said.product and said.product.picture else None,
    )
    written = write(test, services.settings.mail_from, at=at)
    is_captured = _is_captured(context)
    await send_test_mail(
        context.actor, services.vault, written, recipient=person.email, subject=test.subject, is_captured=is_captured
    )
    if not is_captured:
        return context.say("A test mail to %(email)s is on its way.", email=person.email)
    return context.say("A test mail to %(email)s is in the test mailbox.", email=person.email)


def _is_captured(context: RequestContext) -> bool:
    return context.person.environment == "staging" or context.services.captures
