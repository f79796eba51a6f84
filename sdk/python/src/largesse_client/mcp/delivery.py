"""The argument of the quoting tools that says how a gift is delivered."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, BaseModel, Field


class To(BaseModel, extra="forbid"):
    """A recipient."""

    email: Annotated[str, Field(max_length=254)]
    name: Annotated[str | None, Field(max_length=200)] = None
    quantity: Annotated[int, Field(ge=1, le=1000, description="Codes for this recipient")] = 1


class Delivery(BaseModel, extra="forbid"):
    """The recipients, the sender, the time and the paying account. Give either `recipients` or `code_quantity`."""

    recipients: Annotated[
        list[To] | None, Field(max_length=5000, description="Who is emailed; excludes code_quantity")
    ] = None
    code_quantity: Annotated[
        int | None,
        Field(ge=1, le=5000, description="The number of anonymous codes, which are not emailed; excludes recipients"),
    ] = None
    account_id: Annotated[int | None, Field(description="The funding account that pays; left out when invoiced")] = None
    message: Annotated[str | None, Field(max_length=256, description="To the recipients")] = None
    from_name: Annotated[str | None, Field(max_length=32, description="Who it is from")] = None
    wrapping_key: Annotated[str | None, Field(max_length=64)] = None
    send_at: Annotated[AwareDatetime | None, Field(description="When to email, with an offset; left out: at once")] = (
        None
    )
    expiry_after_days: Annotated[int | None, Field(description="Enterprise plans only")] = None
    reminder_days: Annotated[
        list[int] | None,
        Field(
            max_length=3,
            description="Days after the gifts leave at which recipients who have not claimed are reminded; ascending",
        ),
    ] = None
    claim_by: Annotated[
        AwareDatetime | None,
        Field(
            description="When unclaimed gifts are cancelled and refunded automatically, with an offset; after send_at"
        ),
    ] = None
