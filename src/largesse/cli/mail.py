"""`mail`: the mail to recipients."""

import click

from largesse.cli.running import HELP, Commands, operator_actor, read_printable, read_since
from largesse.mail.requeue import RequeueFilter, count_given_up, requeue


@click.group(cls=Commands)
def mail() -> None:
    """Send mail again."""


@mail.command("requeue")
@click.option("--since", required=True, metavar="TIME", help=HELP)
@click.option(
    "--reason",
    metavar="WORDS",
    help="Only what was given up with these words in the mail server's answer, whatever their case, such as '530'.",
)
@click.option("--dry-run", is_flag=True, help="Only say how many messages that would be.")
async def mail_requeue(since: str, reason: str | None, dry_run: bool) -> None:
    """Send again the mail that bounced, was given up after three days, or is held.

    Each message goes out as before, without codes cancelled since, and has three days to be taken. Skips mail
    that was sent again meanwhile. Repeating the command sends nothing twice.
    """
    start = read_since(since)
    wanted = RequeueFilter(start, None if reason is None else read_printable(reason, 500, argument="--reason"))
    async with operator_actor() as actor:
        if dry_run:
            click.echo(f"Messages that would be sent again: {await count_given_up(actor, wanted):,}")
        else:
            click.echo(f"Messages to be sent again: {await requeue(actor, wanted):,}")
