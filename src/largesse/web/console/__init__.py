"""The customers' web application, at `/app`: where their people sign in, send gifts, and see what became of them and of the money.

`routes`       the one table: every address, who may, its title, its place in the menu
`table`        what an entry of it is
`visit`        what a handler is handed, and how it answers: the person, the form, `page`, `see`, `csv`
`parameters`   what an address may say beside its path
`form`         the fields that were posted, and what is wrong with each
`guarding`     before a handler: who signed in, whether they may, whether the form is one of ours and new
`frame`        templates to pages: language, menu, headers, amounts and times
`entrance`     signing in and out, links, choosing a customer
`zones`        the time zones that people choose from
`home`         the first page
`security`     one's own password, second step and sessions
`proving`      asking whether it is still them before what matters, with the form that waits for it
`passkeys`     one's passkeys, and what other pages ask them
`keys`         an administrator's pages of API keys, with `narrowing`, the part of a form that says what one is for
`service_accounts`   and of what programs act as; `limiting` is what they may order, and who may use which funding accounts
`log`          the audit log
`webhooks`     an administrator's pages of subscriptions and their deliveries
`send`         the way from a gift to a placed order
`gifts`        the catalogue, and what a customer makes of it: templates, collections
`funding`      accounts and what they hold, and their statements
`accounts`     group accounts, and who is told when one holds little
`owed`         what an invoiced customer owes, by month
`transfers`    moving money between two accounts
`amounts`      amounts as people type them
`top_ups`      asking for a top-up, how it is paid, cancelling it
`orders`       the list of orders, with `order_filters`, which are in its address, and `order_routes`
`order`        one of them, and what to do about it
`reports`      what orders add up to in `periods`, drawn by `charts`
`people`       an administrator's page of who belongs to the customer

A page more is a template, a handler and a line of the table: CONTRIBUTING.md, "A console page". Rules are in the rooms below;
roles and sessions in `largesse.people`.
"""
