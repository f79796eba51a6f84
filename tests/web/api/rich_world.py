"""The world that most tests of services load."""

RICH_WORLD = """
customers:
  - key: acme
    name: Acme Ltd
    plan: enterprise
    funding: balance
    users:
      - {email: ada@acme.example, name: Ada, role: admin}
      - {email: bob@acme.example, name: Bob, role: member, active: false}
      - {email: cem@acme.example, name: Cem, role: member}
    service_accounts:
      - {key: hr-bot, name: HR bot}
      - {key: crm, name: CRM}
      - {key: idle, name: Idle bot, active: false}
    api_keys:
      - {key: hr, service_account: hr-bot, environment: production}
      - {key: crm, service_account: crm, environment: production}
      - {key: idle, service_account: idle, environment: production}
      - {key: hr-test, service_account: hr-bot, environment: staging}
    funding_accounts:
      - {key: gbp, name: Acme float, master: true, currency: GBP, balance: 1000000.00}
      - {key: team, name: People team, currency: GBP, balance: 50.00, service_accounts: [hr-bot]}
      - {key: sales, name: Sales team, currency: GBP, balance: 20.00, service_accounts: [crm]}
      - {key: eur, name: Euro float, master: true, currency: EUR, balance: 5000.00}
      - {key: jpy, name: Yen float, master: true, currency: JPY, balance: 1000000}
      - {key: kwd, name: Dinar float, master: true, currency: KWD, balance: 1000.500}
      - {key: test-gbp, name: Test float, master: true, currency: GBP, environment: staging, balance: 1000.00}
    templates:
      - {key: welcome, name: Welcome, product: coffee, value: 10, country: GB, wrapping_key: confetti, from_name: Acme,
         message: Welcome!, expiry_after_days: 90}
      - {key: box, name: Box, product: hamper, country: IE}
      - {key: thanks, name: Thanks, collection: acme-thanks}
      - {key: farewell, name: Farewell, product: retired, value: 15}
      - {key: bunch, collection: treats, value: 25}
  - key: globex
    name: Globex
    plan: pro
    funding: balance
    users:
      - {email: gil@globex.example, name: Gil, role: admin}
    service_accounts:
      - {key: globex-bot, name: Globex bot}
    api_keys:
      - {key: globex, service_account: globex-bot, environment: production}
      - {key: globex-test, service_account: globex-bot, environment: staging}
    funding_accounts:
      - {key: globex-gbp, name: Globex float, master: true, currency: GBP, balance: 1000.00}
    templates:
      - {key: globex-hello, name: Hello, product: coffee, value: 5, expiry_after_days: 30}
  - key: initech
    name: Initech
    plan: pro
    funding: invoiced
    service_accounts:
      - {key: initech-bot, name: Initech bot}
    api_keys:
      - {key: initech, service_account: initech-bot, environment: production}
    funding_accounts:
      - {key: initech-gbp, name: Left over, master: true, currency: GBP, balance: 5.00}
  - key: tiny
    name: Tiny
    plan: starter
    funding: balance
    service_accounts:
      - {key: tiny-bot, name: Tiny bot}
    api_keys:
      - {key: tiny, service_account: tiny-bot, environment: production}
products:
  - {key: coffee, name: Coffee House e-gift, digital: true, currency: GBP, countries: [GB, IE], denominations: [5, 10, 25]}
  - {key: cinema, name: Cinema e-gift, digital: true, currency: GBP, countries: [GB], denominations: [12.50]}
  - {key: books, name: Bookshop e-gift, digital: true, currency: EUR, countries: [IE, FR], min_amount: 5, max_amount: 200}
  - {key: shop, name: Shop e-gift, digital: true, currency: GBP, countries: [GB], min_amount: 0.01, max_amount: 100000}
  - {key: ramen, name: Ramen e-gift, digital: true, currency: JPY, countries: [JP], min_amount: 500, max_amount: 10000}
  - {key: dates, name: Dates e-gift, digital: true, currency: KWD, countries: [KW], denominations: [1.250, 5]}
  - {key: hamper, name: Autumn hamper, digital: false, currency: GBP, cost: 35.00, markup_percent: 10,
     postage: {GB: 4.95, IE: 9.95}, vat_percent: {GB: 20, IE: 23}}
  - {key: club, name: Acme club e-gift, digital: true, currency: GBP, countries: [GB], denominations: [10, 20], customers: [acme]}
  - {key: globex-club, name: Globex club e-gift, digital: true, currency: GBP, countries: [GB], denominations: [10, 20],
     customers: [globex]}
  - {key: retired, name: Retired e-gift, digital: true, currency: GBP, countries: [GB], denominations: [15, 30]}
collections:
  - {key: treats, name: Treats, country: GB, currency: GBP, value_points: [10, 25, 50], products: [coffee]}
  - {key: any, name: Anything, country: IE, currency: EUR, value_points: [20, 40], allow_custom_value: true, products: [books]}
  - {key: open, name: Open, country: KW, currency: KWD, allow_custom_value: true, products: [dates]}
  - {key: acme-thanks, customer: acme, name: Acme thanks, country: GB, currency: GBP, value: 25, products: [coffee]}
  - {key: globex-thanks, customer: globex, name: Globex thanks, country: GB, currency: GBP, value: 25, products: [coffee]}
"""
