"""Orders with the client that openapi-generator (python) makes, and prints what came back as JSON."""

import json
import os

from largesse_client import ApiClient, ApiException, Configuration, OrdersApi, Problem, Recipient, SendGift

gift = {"product_id": int(os.environ["PRODUCT_ID"]), "value": 5, "account_id": int(os.environ["ACCOUNT_ID"])}
orders = OrdersApi(ApiClient(Configuration(host=os.environ["LARGESSE"], access_token=os.environ["LARGESSE_API_KEY"])))


def refused(**members: object) -> Problem:
    try:
        orders.send_gift(SendGift(**gift, **members))
    except ApiException as error:
        problem = error.data
    else:
        raise AssertionError("it was placed")
    assert isinstance(problem, Problem)
    return problem


emailed = orders.send_gift(
    SendGift(
        **gift, recipients=[Recipient(email="sam@example.com", name="Sam")], external_reference=os.environ["REFERENCE"]
    )
)
again = refused(code_quantity=1, external_reference=os.environ["REFERENCE"])
batch = orders.send_gift(SendGift(**gift, code_quantity=2))
wrong = refused(recipients=[Recipient(email="sam"), Recipient(email="kim@example.com"), Recipient(email="")])
listed = orders.list_orders(after=int(os.environ["AFTER"]), limit=50)
found = orders.get_order(str(batch.reference))
print(
    json.dumps(
        {
            "emailed": [emailed.reference, emailed.code_count, emailed.total_cost],
            "batch": [batch.reference, *(code.code for code in batch.codes)],
            "found": [found.reference, *(code.code for code in found.codes)],
            "used": [again.status, again.type, again.instance],
            "wrong": [wrong.status, wrong.type, *(error.pointer for error in wrong.errors or [])],
            "listed": [order.reference for order in listed],
        }
    )
)
