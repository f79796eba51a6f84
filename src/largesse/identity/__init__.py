"""Who calls: customers, service accounts, API keys, people.

`keys` looks up who calls on every request (`Authenticator`); `key_records` makes, narrows, replaces, lists and deletes keys; `secret` is what a key looks like;
`guessing` bounds wrong ones. `people` is a person who acts in the web application; `service_accounts` is what programs act as. A
`principal` is whom a request acts for; `standing` decides what a key may do at all, and locks it for what writes. `narrowing` is how
far keys and service accounts are narrowed, `limits` sets what one may order. `saving` writes
those of a world file; `customers` and `users` list an installation's customers and a customer's people.
"""

from largesse.identity.customers import (
    CustomerRecord,
    find_customer,
    list_customers,
    require_second_step,
)
from largesse.identity.guessing import WrongKeys
from largesse.identity.key_records import (
    MOST_NAME,
    KeyRecord,
    NameTaken,
    SecondKey,
    add_key,
    add_second_key,
    create_key,
    delete_key,
    deleted_keys,
    find_key,
    key_holds,
    list_keys,
    narrow_key,
)
from largesse.identity.keys import Authenticator, Caller
from largesse.identity.limits import ServiceAccountRecord, limit_service_account, list_limits
from largesse.identity.narrowing import (
    CODES,
    MOST_NETWORKS,
    READ,
    SCOPES,
    SEND,
    WEBHOOKS,
    Limit,
    networks_said,
    parse_network,
    read_limits,
    require_network,
    require_scope,
    scopes_kept,
    scopes_said,
)
from largesse.identity.people import person_calls
from largesse.identity.principal import SENDERS, Principal
from largesse.identity.saving import save_customers, save_keys, save_service_accounts, save_users
from largesse.identity.service_accounts import (
    ServiceAccount,
    TooManyServiceAccounts,
    add_service_account,
    list_service_accounts,
    switch_service_account,
)
from largesse.identity.standing import (
    HeldPerson,
    PersonStanding,
    Standing,
    hold_key,
    hold_people,
    is_own,
    people_standing,
    require_admission,
    require_own,
    require_sender,
    require_standing,
    standings,
)
from largesse.identity.users import (
    User,
    add_user,
    bind_user,
    deactivate_user,
    list_users,
    note_login,
    set_user_role,
)

__all__ = [
    "CODES",
    "MOST_NAME",
    "MOST_NETWORKS",
    "READ",
    "SCOPES",
    "SEND",
    "SENDERS",
    "WEBHOOKS",
    "Authenticator",
    "Caller",
    "CustomerRecord",
    "HeldPerson",
    "KeyRecord",
    "Limit",
    "NameTaken",
    "PersonStanding",
    "Principal",
    "SecondKey",
    "ServiceAccount",
    "ServiceAccountRecord",
    "Standing",
    "TooManyServiceAccounts",
    "User",
    "WrongKeys",
    "add_key",
    "add_second_key",
    "add_service_account",
    "add_user",
    "bind_user",
    "create_key",
    "deactivate_user",
    "delete_key",
    "deleted_keys",
    "find_customer",
    "find_key",
    "hold_key",
    "hold_people",
    "is_own",
    "key_holds",
    "limit_service_account",
    "list_customers",
    "list_keys",
    "list_limits",
    "list_service_accounts",
    "list_users",
    "narrow_key",
    "networks_said",
    "note_login",
    "parse_network",
    "people_standing",
    "person_calls",
    "read_limits",
    "require_admission",
    "require_network",
    "require_own",
    "require_scope",
    "require_second_step",
    "require_sender",
    "require_standing",
    "save_customers",
    "save_keys",
    "save_service_accounts",
    "save_users",
    "scopes_kept",
    "scopes_said",
    "set_user_role",
    "standings",
    "switch_service_account",
]
