-- Two roles with the rights that are needed and no more. Run it after setup, again after each upgrade, as a
-- user who may create roles and grant, then give the roles to users: GRANT outbox_producer TO shop, and
-- SET DEFAULT ROLE so that they hold from the first statement of a connection on.

-- name: grants
-- A producer writes the columns of a message: it reads nothing but the version,
-- and cannot say that a row is published.
-- The relay changes rows, and no table.
CREATE ROLE IF NOT EXISTS {name:producer};
CREATE ROLE IF NOT EXISTS {name:relay};
GRANT INSERT ({id}, {aggregate_type}, {aggregate_id}, {event_type}, {payload}, {target}, {priority}, {available_at}
  {?revision}, {revision}{/}
  {?sequence_number}, {sequence_number}{/}
  {?headers}, {headers}{/}
  {?snapshot}, {snapshot}{/}
  {?correlation_id}, {correlation_id}{/}
  {?causation_id}, {causation_id}{/}
  {?partition_key}, {partition_key}{/}
  {?occurred_at}, {occurred_at}{/}) ON {outbox} TO {name:producer};
GRANT EXECUTE ON PROCEDURE {fn:push} TO {name:producer};
GRANT SELECT, UPDATE, DELETE ON {outbox} TO {name:relay};
GRANT SELECT, INSERT, UPDATE, DELETE ON {workers} TO {name:relay};
GRANT SELECT, INSERT, UPDATE, DELETE ON {partitions} TO {name:relay};
GRANT SELECT, INSERT, UPDATE, DELETE ON {throughput} TO {name:relay};
GRANT SELECT ON {meta} TO {name:relay};
GRANT SELECT ON {meta} TO {name:producer};
