-- What a worker leases is a subscription's queue; it was called a lane.
ALTER TABLE webhook_lanes RENAME TO subscription_queues;
ALTER TABLE subscription_queues RENAME CONSTRAINT webhook_lanes_pkey TO subscription_queues_pkey;
ALTER TABLE subscription_queues
    RENAME CONSTRAINT webhook_lanes_subscription_id_fkey TO subscription_queues_subscription_id_fkey;
ALTER INDEX webhook_lanes_due RENAME TO subscription_queues_due;
ALTER INDEX webhook_lanes_failing RENAME TO subscription_queues_failing;
