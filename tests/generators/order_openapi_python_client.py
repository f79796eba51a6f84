"""Orders with the client that openapi-python-client makes, and prints what came back as JSON."""

import json
import os

from largesse_client import AuthenticatedClient
from largesse_client.api.orders import get_order, list_orders, send_gift
from largesse_client.models import Problem, Recipient, SendGift, SendResponse

gift = {"product_id": int(os.environ["PRODUCT_ID"]), "value": 5, "account_id": int(os.environ["ACCOUNT_ID"])}
client = AuthenticatedClient(os.environ["LARGESSE"], os.environ["LARGESSE_API_KEY"])


def send(**members: object) -> SendResponse | Problem:
    answer = send_gift.sync(client=client, body=SendGift(**gift, **members))
    assert answer is not None
    return answer


emailed = send(recipients=[Recipient(email="sam@example.com", name="Sam")], external_reference=os.environ["REFERENCE"])
again = send(code_quantity=1, external_reference=os.environ["REFERENCE"])
batch = send(code_quantity=2)
wrong = send(recipients=[Recipient(email="sam"), Recipient(email="kim@example.com"), Recipient(email="")])
assert isinstance(emailed, SendResponse)
assert isinstance(batch, SendResponse)
assert isinstance(again, Problem)
assert isinstance(wrong, Problem)
listed = list_orders.sync(client=client, after=int(os.environ["AFTER"]), limit=50)
assert isinstance(listed, list)
found = get_order.sync(str(batch.reference), client=client)
assert isinstance(found, SendResponse)
print(
    json.dumps(
        {
            "emailed": [emailed.reference, emailed.code_count, emailed.total_cost],
            "batch": [batch.reference, *(code.code for code in batch.codes)],
            "found": [found.reference, *(code.code for code in found.codes)],
            "used": [again.status, again.type_, again.instance],
            "wrong": [wrong.status, wrong.type_, *(error.pointer for error in wrong.errors)],
            "listed": [order.reference for order in listed],
        }
    )
)
