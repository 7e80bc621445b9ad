-- Two roles with the rights that are needed and no more. Run it after setup, again after each upgrade, as a
-- user who may create roles and grant, then give the roles to users: GRANT outbox_producer TO shop, and
-- SET DEFAULT ROLE so that they hold from the first statement of a connection on.

-- name: grants
-- A producer writes the columns of a message: it reads nothing but the version, and changes no row.
-- The relay reads the log and removes what is old. With PROCESS it sees which statements run, and so
-- whether a number of a transaction that was rolled back can be forgotten.
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
GRANT SELECT, DELETE ON {outbox} TO {name:relay};
GRANT SELECT, INSERT, DELETE ON {readers} TO {name:relay};
GRANT SELECT, INSERT, DELETE ON {batches} TO {name:relay};
GRANT SELECT, INSERT, UPDATE, DELETE ON {exceptions} TO {name:relay};
GRANT SELECT, INSERT, UPDATE, DELETE ON {workers} TO {name:relay};
GRANT SELECT, INSERT, UPDATE, DELETE ON {leases} TO {name:relay};
GRANT SELECT, INSERT, UPDATE, DELETE ON {throughput} TO {name:relay};
GRANT SELECT, INSERT, UPDATE, DELETE ON {audit} TO {name:relay};
GRANT SELECT ON {fn:messages} TO {name:relay};
GRANT SELECT ON {meta} TO {name:relay};
GRANT SELECT ON {meta} TO {name:producer};
GRANT PROCESS ON *.* TO {name:relay};

-- name: grants_parts
-- Of a partitioned log, after GRANT LOCK TABLES ON its database: to make partitions and to drop them. The server asks for all.
 TO {name:relay};
GRANT ALTER, CREATE, INSERT, DROP ON {outbox} TO {name:relay};
