"""Who calls: customers, service accounts, API keys, people.

`keys` looks up who calls on every request (`Authenticator`), and makes and deletes keys; `secret` is what a key looks like;
`guessing` bounds wrong ones. `people` is a person who acts in the web application; `service_accounts` is what programs act as. A
`principal` is whom a request acts for; `standing` decides what a key may do at all, and locks it for what writes. `saving` writes
those of a world file; `customers` and `users` list an installation's customers and a customer's people.
"""

from largesse.identity.customers import (
    CustomerRecord,
    find_customer,
    list_customers,
    require_second_step,
)
from largesse.identity.guessing import WrongKeys
from largesse.identity.keys import (
    Authenticator,
    Caller,
    KeyRecord,
    NameTaken,
    add_key,
    create_key,
    delete_key,
    deleted_keys,
    key_holds,
    list_keys,
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
    Standing,
    hold_key,
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
    "SENDERS",
    "Authenticator",
    "Caller",
    "CustomerRecord",
    "KeyRecord",
    "NameTaken",
    "Principal",
    "ServiceAccount",
    "Standing",
    "TooManyServiceAccounts",
    "User",
    "WrongKeys",
    "add_key",
    "add_service_account",
    "add_user",
    "bind_user",
    "create_key",
    "deactivate_user",
    "delete_key",
    "deleted_keys",
    "find_customer",
    "hold_key",
    "is_own",
    "key_holds",
    "list_customers",
    "list_keys",
    "list_service_accounts",
    "list_users",
    "note_login",
    "people_standing",
    "person_calls",
    "require_admission",
    "require_own",
    "require_second_step",
    "require_sender",
    "require_standing",
    "save_customers",
    "save_keys",
    "save_service_accounts",
    "save_users",
    "set_user_role",
    "standings",
    "switch_service_account",
]
