"""Two seed files in small: one with each field that loading writes, one that mistakes are made in."""

WHOLE = """
customers:
  - key: acme
    name: Acme Ltd
    plan: enterprise
    funding: balance
    users:
      - {email: Ada@acme.example, name: Ada, role: admin}
      - {email: bob@acme.example, name: Bob}
    service_accounts:
      - {key: hr-bot, name: HR bot}
      - {key: crm, name: CRM, active: false}
    api_keys:
      - {key: hr-prod, service_account: hr-bot, environment: production}
      - {key: hr-test, service_account: hr-bot, environment: staging}
    funding_accounts:
      - {key: gbp, name: Float, master: true, currency: GBP, balance: 1000.00}
      - {key: team, name: Team, currency: GBP, environment: staging, balance: 0.10, service_accounts: [hr-bot, crm]}
      - {key: empty, name: Empty, currency: JPY}
    templates:
      - {key: welcome, name: Welcome, product: coffee, value: 10, wrapping_key: confetti, from_name: Acme,
         message: Welcome!, expiry_after_days: 90}
      - {key: box, product: hamper, country: IE}
      - {key: thanks, collection: acme-thanks}
  - key: globex
    name: Globex
    plan: pro
    funding: invoiced
    service_accounts:
      - {key: hr-bot, name: Other bot}
    api_keys:
      - {key: globex-prod, service_account: hr-bot, environment: production}
products:
  - {key: coffee, name: Coffee House e-gift, digital: true, currency: gbp, countries: [NO, gb], denominations: [25, 5, 10]}
  - {key: books, name: Bookshop e-gift, digital: true, currency: EUR, countries: [IE, FR], min_amount: 5, max_amount: 200}
  - {key: hamper, name: Autumn hamper, digital: false, currency: GBP, cost: 35.00, markup_percent: 10.5,
     postage: {GB: 4.95, IE: 9.95}, vat_percent: {GB: 20, IE: 13.5}, customers: [acme]}
collections:
  - {key: treats, name: Treats, country: GB, currency: GBP, value_points: [50, 10, 25], products: [coffee, books]}
  - {key: acme-thanks, customer: acme, name: Acme thanks, country: GB, currency: GBP, value: 25, products: [coffee]}
"""


SMALL = """\
customers:
  - key: acme
    name: Acme Ltd
    plan: enterprise
    funding: balance
    users:
      - {email: ada@acme.example, name: Ada, role: admin}
    service_accounts:
      - {key: bot, name: Bot}
    api_keys:
      - {key: prod, service_account: bot, environment: production}
    funding_accounts:
      - {key: gbp, name: Float, currency: GBP, balance: 10, service_accounts: [bot]}
    templates:
      - {key: welcome, product: coffee, value: 10}
      - {key: thanks, collection: thanks}
      - {key: any, collection: any, value: 0.01}
  - {key: globex, name: Globex, plan: pro, funding: invoiced}
products:
  - {key: coffee, name: Coffee, digital: true, currency: GBP, countries: [GB], denominations: [5, 10]}
  - {key: range, name: Range, digital: true, currency: GBP, countries: [GB], min_amount: 5, max_amount: 50}
  - {key: hamper, name: Hamper, digital: false, currency: GBP, cost: 30, postage: {GB: 4}, vat_percent: {GB: 20}}
collections:
  - {key: treats, name: Treats, country: GB, currency: GBP, value_points: [10, 25], products: [coffee]}
  - {key: any, name: Any, country: GB, currency: GBP, allow_custom_value: true, products: [coffee]}
  - {key: thanks, customer: acme, name: Thanks, country: IE, currency: GBP, value: 25, products: [coffee]}
"""
