-- The rows of a database at revision 0044, filled through its API, pages, commands and worker. All of it is made up: see facts.py.
INSERT INTO public.customers OVERRIDING SYSTEM VALUE VALUES
	(1, 'acme', 'Acme Ltd', 'enterprise', 'balance', '2026-11-23 20:18:54.576208+00', false);
INSERT INTO public.accounts VALUES
	(2, 1, 'staging', 'receivable', NULL, NULL, false, false, 'GBP', 0, '2026-11-23 20:18:54.576208+00', '\x00000000000000000000000000000000', NULL),
	(14, 1, 'staging', 'funding', 'second', 'Second', false, false, 'GBP', 0, '2026-11-23 20:19:04.233296+00', '\x00000000000000000000000000000000', NULL),
	(3, 1, 'staging', 'sales', NULL, NULL, false, false, 'GBP', 6000, '2026-11-23 20:18:54.576208+00', '\x5bc70e9ffb53dfc358b37b064cd7ebee', NULL),
	(1, 1, 'staging', 'funding', 'gbp', 'Float', true, true, 'GBP', 496500, '2026-11-23 20:18:54.576208+00', '\x71f93fd0557eb51d5017a317a30fafc7', NULL),
	(4, 1, 'staging', 'deposits', NULL, NULL, false, false, 'GBP', -502500, '2026-11-23 20:18:54.576208+00', '\x750085db83882c2a0cb89b44c6f0c416', NULL);
INSERT INTO public.service_accounts OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 'hr-bot', 'HR bot', true, '2026-11-23 20:18:54.576208+00', NULL);
INSERT INTO public.people OVERRIDING SYSTEM VALUE VALUES
	(1, 'ada@acme.example', 'ada@acme.example', '$argon2id$v=19$m=19456,t=2,p=1$ZrTZiq1uwPiG5cwtUP1yCg$jwXuAStCu9p8sxDgt14JZPzE3tGV0sZrxh8odGt9xaI', NULL, NULL, '2026-11-23 20:19:03.154046+00', NULL, 0);
INSERT INTO public.users OVERRIDING SYSTEM VALUE VALUES
	(2, 1, 'bob@acme.example', 'Bob', 'member', true, '2026-11-23 20:18:54.576208+00', NULL, NULL),
	(1, 1, 'ada@acme.example', 'Ada', 'admin', true, '2026-11-23 20:18:54.576208+00', '2026-11-23 20:19:03.154046+00', 1);
INSERT INTO public.api_keys OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 1, 'acme-staging', 'staging', '\xe08025d1f96831e1a9a3f2bfe17f4b7968e8affc583c505d1902ae90f353b9bb', '2026-11-23 20:18:54.576208+00', '2026-11-23 20:19:00.483342+00', NULL, NULL, NULL, NULL, NULL, '127.0.0.1');
INSERT INTO public.audit_events VALUES
	(0, 1, '2026-11-23 20:18:54.576208+00', NULL, 'command', NULL, 'largesse load (root)', NULL, NULL, 'world.loaded', 'file up_a08_superuser.yaml', NULL, '{"products":1,"collections":1,"templates":0,"funding_accounts":1,"customers":1,"service_accounts":1,"api_keys":1}', '\x017963eb48b8d258b4fc42750af9db1af3'),
	(1, 2, '2026-11-23 20:18:58.985558+00', 'staging', 'key', 1, 'HR bot', '127.0.0.1', '4a7d3728a1de5d2a', 'webhook.created', 'subscription 4dd0dc69-c70f-463e-ab3d-d6c9bbe4ba06', NULL, '{"event":"order.created","target_url":"https://hooks.acme.example/x"}', '\x01efddf10a9a8cec3920d447aab824412d'),
	(1, 3, '2026-11-23 20:18:59.138636+00', 'staging', 'key', 1, 'HR bot', '127.0.0.1', 'b63c63e6a01858a2', 'order.cancelled', 'order F71MMGPSBRHVWS8C6M6P', NULL, '{"cancelled":2,"refunded_minor":2000}', '\x016ae2b054e4312de14c37a5cc595df5cb'),
	(1, 4, '2026-11-23 20:19:00.973762+00', 'staging', 'command', NULL, 'largesse top-up (root)', NULL, NULL, 'account.topped_up', 'account acme/gbp', NULL, '{"amount_minor":2500,"reference":"t-1","balance_minor":496500}', '\x011437bb03553466eac01404d2fd1684af'),
	(1, 5, '2026-11-23 20:19:02.690542+00', NULL, 'command', NULL, 'largesse users invite (root)', NULL, NULL, 'person.invited', 'ada@acme.example', NULL, '{"role":"admin"}', '\x013b528385643519d0e3af79091b6bc341'),
	(1, 6, '2026-11-23 20:19:03.154046+00', NULL, 'person', 1, 'ada@acme.example', '127.0.0.1', '7217cf2aeba31667', 'person.joined', 'ada@acme.example', NULL, NULL, '\x0100631ed7d8d7d6cfea2cda560343c1ea'),
	(1, 7, '2026-11-23 20:19:03.154046+00', NULL, 'person', 1, 'ada@acme.example', '127.0.0.1', '7217cf2aeba31667', 'person.signed_in', 'ada@acme.example', NULL, NULL, '\x01c28d0d7efe2cc682ff0b04c3384bf2dd'),
	(1, 8, '2026-11-23 20:19:04.233296+00', 'staging', 'command', NULL, 'largesse accounts create (root)', NULL, NULL, 'account.created', 'account 14', NULL, '{"name":"Second","key":"second","currency":"GBP"}', '\x01893dfbf391ff1dbeaa70dd4bb28aba31');
INSERT INTO public.audit_heads VALUES
	(0, '\x8c02c86d76e446387bdbe8a2394de6dd'),
	(1, '\x4400877a57e5763ade73629b7441c64d');
INSERT INTO public.catalogue_version VALUES
	(true, 3);
INSERT INTO public.chain_keys VALUES
	(1, '\x29f563d39c6702c24283431b55c05099d24b4e203ddad76c7998a1b24f005db0272695b80ec2ca568a2f5bc09281d230d8ef11c068859e172b11e2efbc5ac138', '2026-11-23 20:18:54.569727+00');
INSERT INTO public.clock VALUES
	(true, '00:00:00');
INSERT INTO public.collections OVERRIDING SYSTEM VALUE VALUES
	(1, 'treats', NULL, 'Treats', 'GB', 'GBP', NULL, '{1000}', false, '{1}', true, false);
INSERT INTO public.deliveries VALUES
	(1, '4dd0dc69-c70f-463e-ab3d-d6c9bbe4ba06', 3, 'order.created', NULL, 'pending', 2, 10, '2026-11-23 20:19:20.454844+00', '2026-11-23 20:18:59.073212+00', NULL, 1);
INSERT INTO public.delivery_attempts VALUES
	(1, 1, '2026-11-23 20:18:59.10911+00', 6, NULL, 'dns', '\x', 1),
	(1, 2, '2026-11-23 20:19:03.136303+00', 4, NULL, 'dns', '\x', 1);
INSERT INTO public.entries VALUES
	(1, 1, 1, 'top_up', NULL, 500000, 500000, NULL, '2026-11-23 20:18:54.576208+00', 1, '\x015de744eb758db26235f0fe1a1e11e44d'),
	(4, 2, 1, 'top_up', NULL, -500000, -500000, NULL, '2026-11-23 20:18:54.576208+00', 1, '\x013e38b9f1828e24d8f93ff39f935b6ddd'),
	(1, 3, 2, 'order', 1, -4000, 496000, NULL, '2026-11-23 20:18:58.88293+00', 1, '\x0116e85f5408f9c59111ba850f292576e1'),
	(3, 4, 2, 'order', 1, 4000, 4000, NULL, '2026-11-23 20:18:58.88293+00', 1, '\x01873bd1f07b6c82e08c75fe994dfcf612'),
	(1, 5, 3, 'order', 2, -2000, 494000, NULL, '2026-11-23 20:18:58.938912+00', 1, '\x0111e0e3bfc26c463454f777ec59a6b490'),
	(3, 6, 3, 'order', 2, 2000, 6000, NULL, '2026-11-23 20:18:58.938912+00', 1, '\x0111319e74a498dd89bdb7a6cf4742c98e'),
	(1, 7, 4, 'order', 3, -2000, 492000, NULL, '2026-11-23 20:18:59.042959+00', 1, '\x01d70566d921021927015f2dd1480a7c7e'),
	(3, 8, 4, 'order', 3, 2000, 8000, NULL, '2026-11-23 20:18:59.042959+00', 1, '\x01494f3178e8288503955cac4cfad08737'),
	(1, 9, 5, 'refund', 3, 2000, 494000, NULL, '2026-11-23 20:18:59.138636+00', 1, '\x016bcb39a91e4d96fb9615bd8b4a61a6e9'),
	(3, 10, 5, 'refund', 3, -2000, 6000, NULL, '2026-11-23 20:18:59.138636+00', 1, '\x01744a861e7783284a5adc7b13e5da709e'),
	(1, 11, 6, 'top_up', NULL, 2500, 496500, 't-1', '2026-11-23 20:19:00.973762+00', 1, '\x012cfb8e4c01082fc478c9054799eab325'),
	(4, 12, 6, 'top_up', NULL, -2500, -502500, NULL, '2026-11-23 20:19:00.973762+00', 1, '\x01bd3b883906df5641bb914de477cbdd7c');
INSERT INTO public.events VALUES
	(1, 1, 1, 'staging', 'order.created', '\x7b226964223a312c226576656e74223a226f726465722e63726561746564222c227265666572656e6365223a224637314d30463558514539474645565344584147222c22637573746f6d65724964223a312c2276616c7565223a31302e302c2263757272656e6379223a22474250222c22636f756e747279223a224742222c22736f7572636554797065223a22617069222c2265787465726e616c5265666572656e6365223a6e756c6c2c226769667453656c656374696f6e54797065223a2267696674222c226769667450726f647563744964223a312c226769667473436f6c6c656374696f6e4964223a6e756c6c2c227772617070696e674b6579223a2264656661756c74222c2266726f6d4e616d65223a6e756c6c2c2264656c69766572794d6f6465223a226d616e75616c222c226c696e65436f756e74223a342c22637265617465644279223a312c226372656174696f6e44617465223a22323032362d31312d32335432303a31383a35382e3838323933305a227d', '2026-11-23 20:18:58.88293+00', '2026-11-23 20:18:58.941439+00'),
	(2, 2, 1, 'staging', 'order.created', '\x7b226964223a322c226576656e74223a226f726465722e63726561746564222c227265666572656e6365223a224637314d54585459545739445245384554313238222c22637573746f6d65724964223a312c2276616c7565223a31302e302c2263757272656e6379223a22474250222c22636f756e747279223a224742222c22736f7572636554797065223a22617069222c2265787465726e616c5265666572656e6365223a22706f2d31222c226769667453656c656374696f6e54797065223a2267696674222c226769667450726f647563744964223a312c226769667473436f6c6c656374696f6e4964223a6e756c6c2c227772617070696e674b6579223a2264656661756c74222c2266726f6d4e616d65223a6e756c6c2c2264656c69766572794d6f6465223a226d616e75616c222c226c696e65436f756e74223a322c22637265617465644279223a312c226372656174696f6e44617465223a22323032362d31312d32335432303a31383a35382e3933383931325a227d', '2026-11-23 20:18:58.938912+00', '2026-11-23 20:18:59.000381+00'),
	(3, 3, 1, 'staging', 'order.created', '\x7b226964223a332c226576656e74223a226f726465722e63726561746564222c227265666572656e6365223a224637314d4d4750534252485657533843364d3650222c22637573746f6d65724964223a312c2276616c7565223a31302e302c2263757272656e6379223a22474250222c22636f756e747279223a224742222c22736f7572636554797065223a22617069222c2265787465726e616c5265666572656e6365223a6e756c6c2c226769667453656c656374696f6e54797065223a2267696674222c226769667450726f647563744964223a312c226769667473436f6c6c656374696f6e4964223a6e756c6c2c227772617070696e674b6579223a2264656661756c74222c2266726f6d4e616d65223a6e756c6c2c2264656c69766572794d6f6465223a226d616e75616c222c226c696e65436f756e74223a322c22637265617465644279223a312c226372656174696f6e44617465223a22323032362d31312d32335432303a31383a35392e3034323935395a227d', '2026-11-23 20:18:59.042959+00', '2026-11-23 20:18:59.073212+00');
INSERT INTO public.line_events VALUES
	(3, 1, 'cancelled', '2026-11-23 20:18:59.138636+00', 1),
	(3, 2, 'cancelled', '2026-11-23 20:18:59.138636+00', 1),
	(1, 1, 'opened', '2026-11-23 20:18:59.602948+00', 1),
	(1, 1, 'claimed', '2026-11-23 20:18:59.602948+00', 1),
	(1, 1, 'chosen', '2026-11-23 20:18:59.602948+00', 1),
	(1, 1, 'fulfilled', '2026-11-23 20:18:59.602948+00', 1);
INSERT INTO public.line_states VALUES
	(3, 1, 'cancelled', NULL, NULL, NULL, NULL, NULL, 1),
	(3, 2, 'cancelled', NULL, NULL, NULL, NULL, NULL, 1),
	(1, 1, 'fulfilled', '2026-11-23 20:18:59.602948+00', '2027-11-23 20:18:59.602948+00', 1, NULL, NULL, 1);
INSERT INTO public.lines VALUES
	(1, 1, NULL, NULL, -2142734291907290909, '\x5db97850d5d1228dc04b915babc5e16225ec5fe83ddc2e86e68f42e52e9de50ff5bab151ff29873e625df6588d', 1),
	(1, 2, NULL, NULL, -8689169485926799782, '\x5db978508f4c2b667c1c6882ec81301ee74969a32dbe3549d8203e6318aed65deca92b1c3bc5fdee1ad3ab4dcf', 1),
	(1, 3, NULL, NULL, 4726442434129919950, '\x5db97850ba843bb0e46d535685a63d25107a3f770a9fe1994f3ab05af41c0b4e42bf1da2da9dcd8ee56cc6d6c8', 1),
	(1, 4, NULL, NULL, 5883358050495035023, '\x5db978500b1c970ecdebe0f76014b3941de865464013758b16495514709aeab8f0792eadebb931ada5c397c7b9', 1),
	(2, 1, NULL, NULL, 5287614305170004333, '\x5db978503fe50bf5331f1bcd44064493b6d4d10b0e26414c532713a3045dfdfe048df417cd484b154f1ee528da', 1),
	(2, 2, NULL, NULL, -7514685398138135791, '\x5db97850cf0cb56269aac29d6ac184be830723b90cfedeb98f5140bb6f13ee37cf195f1ce0140723f9bd7fe3e4', 1),
	(3, 1, NULL, NULL, -1653653269927314292, '\x5db97850c3328a811fe3c4634eecb85f45e5c19e85b0d23a48b0fe27ce56c3ad91669bfa646b74342ce8edf4c4', 1),
	(3, 2, NULL, NULL, -624908449552872579, '\x5db97850a9e70928ac4b612e33f66eb6f0f70aad4dd80cbea742870ce16b9c225d9d2958a728ec349a68d96afc', 1);
INSERT INTO public.master_keys VALUES
	('\x7cf6b1d308161157358b231da8081ac1cfb0a03edfb1e466c3ab05c2e5c1905f03753057bbd06f7e', '\x7cf6b1d3', '2026-11-23 20:18:54.552327+00', '2026-11-23 20:19:04.200605+00', NULL, NULL);
INSERT INTO public.order_acts VALUES
	(1, 3, 'cancel', NULL, 1, 1, '127.0.0.1', '2026-11-23 20:18:59.138636+00', NULL, 1);
INSERT INTO public.orders VALUES
	(1, 'F71M0F5XQE9GFEVSDXAG', 1, 'staging', 1, 'api', NULL, 'gift', 1, NULL, NULL, 'GB', 'GBP', 1000, 4000, 4, 0, 'manual', 'default', NULL, NULL, NULL, NULL, 1, '2026-11-23 20:18:58.88293+00', 1, '127.0.0.1', NULL, NULL),
	(2, 'F71MTXTYTW9DRE8ET128', 1, 'staging', 1, 'api', 'po-1', 'gift', 1, NULL, NULL, 'GB', 'GBP', 1000, 2000, 2, 0, 'manual', 'default', NULL, NULL, NULL, NULL, 1, '2026-11-23 20:18:58.938912+00', 1, '127.0.0.1', NULL, NULL),
	(3, 'F71MMGPSBRHVWS8C6M6P', 1, 'staging', 1, 'api', NULL, 'gift', 1, NULL, NULL, 'GB', 'GBP', 1000, 2000, 2, 0, 'manual', 'default', NULL, NULL, NULL, NULL, 1, '2026-11-23 20:18:59.042959+00', 1, '127.0.0.1', NULL, NULL);
INSERT INTO public.products OVERRIDING SYSTEM VALUE VALUES
	(1, 'coffee', 'Coffee', true, 'GBP', '{GB}', '{500,1000}', NULL, NULL, NULL, NULL, '{}', '{}', NULL, true, NULL, NULL, NULL, NULL);
INSERT INTO public.report_groups VALUES
	(1, 1, 'staging', 'GBP', 'api', 1, 0, 1, 1, 0);
INSERT INTO public.report_orders VALUES
	(1, 2, 'staging', 1, 'waiting', '2026-11-23 20:18:58.938912+00', 2, 2000, 0, 0, 0, 0, 0, '{}', '{}', '{}', '{}', '{0,0,0,0,0}', NULL, 0),
	(1, 3, 'staging', 1, 'cancelled', '2026-11-23 20:18:59.042959+00', 2, 2000, 0, 0, 0, 2, 0, '{}', '{}', '{2026-11-23}', '{2}', '{0,0,0,0,0}', '2026-11-23 20:18:59.138636+00', 0),
	(1, 1, 'staging', 1, 'waiting', '2026-11-23 20:18:58.88293+00', 4, 4000, 1, 1, 0, 0, 0, '{2026-11-23}', '{1}', '{}', '{}', '{1,0,0,0,0}', NULL, 0);
INSERT INTO public.report_sums VALUES
	(1, 'day', '2026-11-23', 1, 'cancelled', 1, 2, 2000, 0, 0, 2, 2000, 0, 0, 0, 0, 0),
	(1, 'month', '2026-11-01', 1, 'cancelled', 1, 2, 2000, 0, 0, 2, 2000, 0, 0, 0, 0, 0),
	(1, 'day', '2026-11-23', 1, 'waiting', 2, 6, 6000, 1, 1000, 0, 0, 1, 0, 0, 0, 0),
	(1, 'month', '2026-11-01', 1, 'waiting', 2, 6, 6000, 1, 1000, 0, 0, 1, 0, 0, 0, 0);
INSERT INTO public.report_words VALUES
	(1, 'staging', 'po', '2026-11-23 20:18:58.938912+00', 2),
	(1, 'staging', 'po-1', '2026-11-23 20:18:58.938912+00', 2);
INSERT INTO public.sessions OVERRIDING SYSTEM VALUE VALUES
	(1, '\x566b51cc35d2e36e8f3f12e7944b3fd9ef0c08d973a694e368187263852a8976', 1, 1, 'staging', '127.0.0.1', 'python-httpx/0.28.1', NULL, '2026-11-23 20:19:03.154046+00', '2026-11-23 20:19:03.154046+00', '2026-12-07 20:19:03.154046+00', NULL, false, '2026-11-23 20:19:03.154046+00', '\x228f95129b94f3d9ba6b5b11b022fa7e689ab77a5b4cd2885ad1c60b52819cfd', NULL, NULL);
INSERT INTO public.sign_in_allowances VALUES
	(7192220468871593696, 58.004787, false, '2026-11-23 20:19:03.050286+00');
INSERT INTO public.sign_in_links VALUES
	('\x2479c356c8ee390152ce5530afd8d7b0b3c7585dbaebf4de17ba9c2d723ef630', 'invitation', 1, NULL, '2026-11-23 20:19:02.690542+00', '2026-11-30 20:19:02.690542+00', '2026-11-23 20:19:03.154046+00');
INSERT INTO public.webhook_subscriptions VALUES
	('4dd0dc69-c70f-463e-ab3d-d6c9bbe4ba06', 1, 'staging', 'order.created', 'https://hooks.acme.example/x', '\xdee4358744a1356dd98decd61e6e5ae0e1924e0ad38a43a6ed612fd99e747171fb09f313c7df465b84ea99ff4713a190195f963cc16ee7a98d9edb7a043f2ae8059e54bde0be575d9bb7d957e9da23974fbd', 1, '2026-11-23 20:18:58.985558+00', NULL);
INSERT INTO public.subscription_queues VALUES
	('4dd0dc69-c70f-463e-ab3d-d6c9bbe4ba06', '2026-11-23 20:19:20.454844+00', true, '-infinity', 2, 1);
INSERT INTO public.vouchers VALUES
	(1, 1, 1000, -2384980966580322734, '\x3639c4cb2b36205118d7d279b1c0feab0b11423829c0ebde0707d11eff96bcd9c015bac6ab59c058d0d964af90a635c577069e03f7b6dc292d5e6d9ebe8852c2c10e0a84cb', true, '2026-11-23 20:18:59.602948+00', 1, 1, '2026-11-23 20:18:59.602948+00', 1);
SELECT pg_catalog.setval('public.accounts_id_seq', 14, true);
SELECT pg_catalog.setval('public.api_keys_id_seq', 1, true);
SELECT pg_catalog.setval('public.audit_events_id_seq', 8, true);
SELECT pg_catalog.setval('public.captured_mail_id_seq', 1, false);
SELECT pg_catalog.setval('public.code_readings_id_seq', 1, false);
SELECT pg_catalog.setval('public.collections_id_seq', 1, true);
SELECT pg_catalog.setval('public.customers_id_seq', 1, true);
SELECT pg_catalog.setval('public.deliveries_id_seq', 1, true);
SELECT pg_catalog.setval('public.entries_id_seq', 12, true);
SELECT pg_catalog.setval('public.erasures_id_seq', 1, false);
SELECT pg_catalog.setval('public.events_id_seq', 3, true);
SELECT pg_catalog.setval('public.mail_requeues_id_seq', 1, false);
SELECT pg_catalog.setval('public.messages_id_seq', 1, false);
SELECT pg_catalog.setval('public.movements_id_seq', 6, true);
SELECT pg_catalog.setval('public.order_acts_id_seq', 1, true);
SELECT pg_catalog.setval('public.order_changes_id_seq', 7, true);
SELECT pg_catalog.setval('public.orders_id_seq', 3, true);
SELECT pg_catalog.setval('public.passkeys_id_seq', 1, false);
SELECT pg_catalog.setval('public.people_id_seq', 1, true);
SELECT pg_catalog.setval('public.people_mails_id_seq', 1, false);
SELECT pg_catalog.setval('public.products_id_seq', 1, true);
SELECT pg_catalog.setval('public.report_groups_id_seq', 1, true);
SELECT pg_catalog.setval('public.service_accounts_id_seq', 1, true);
SELECT pg_catalog.setval('public.sessions_id_seq', 1, true);
SELECT pg_catalog.setval('public.shipments_id_seq', 1, false);
SELECT pg_catalog.setval('public.templates_id_seq', 1, false);
SELECT pg_catalog.setval('public.users_id_seq', 3, true);
SELECT pg_catalog.setval('public.voucher_waits_id_seq', 1, false);
SELECT pg_catalog.setval('public.vouchers_id_seq', 1, true);
