-- Two roles with the rights that are needed and no more. Whoever owns the tables runs this after setup,
-- again after each upgrade, and grants the roles to users: GRANT outbox_producer TO shop.

-- name: grants
-- A producer writes the columns of a message: it reads nothing but the version, and cannot choose a transaction or a
-- number. The identity column needs no right on its sequence. The relay reads the log and removes what is old; it changes
-- no row of it. It asks the sequence how long the log is, and reads more where it may not. The partitions of a
-- partitioned log it makes, empties and drops by functions.
BEGIN;
DO $grants$
BEGIN
  IF to_regrole('{name:producer}') IS NULL THEN
    CREATE ROLE {name:producer} NOLOGIN;
  END IF;
  IF to_regrole('{name:relay}') IS NULL THEN
    CREATE ROLE {name:relay} NOLOGIN;
  END IF;
  EXECUTE format('GRANT USAGE ON SCHEMA %s TO {name:producer}, {name:relay}',
    (SELECT relnamespace::regnamespace FROM pg_class WHERE oid = '{outbox}'::regclass));
  IF pg_get_serial_sequence('{outbox}', replace('{seq}', '"', '')) IS NOT NULL THEN
    EXECUTE format('GRANT SELECT ON SEQUENCE %s TO {name:relay}', pg_get_serial_sequence('{outbox}', replace('{seq}', '"', '')));
  END IF;
  EXECUTE (SELECT string_agg(format('GRANT EXECUTE ON FUNCTION %s TO {name:producer}', p.oid::regprocedure), '; ')
    FROM pg_proc AS p JOIN pg_class AS c ON c.relnamespace = p.pronamespace
   WHERE c.oid = '{outbox}'::regclass AND quote_ident(p.proname) = quote_ident(c.relname || '_push'));
  IF to_regclass('{fn:default}') IS NOT NULL THEN
    GRANT SELECT, DELETE ON {fn:default} TO {name:relay};
    GRANT EXECUTE ON FUNCTION {fn:part_add}(bigint, bigint), {fn:part_empty}(bigint, bigint, xid8), {fn:part_drop}(bigint) TO {name:relay};
  END IF;
END
$grants$;
GRANT INSERT ({id}, {aggregate_type}, {aggregate_id}, {event_type}, {payload}, {target}, {priority}, {available_at}
  {?revision}, {revision}{/}
  {?sequence_number}, {sequence_number}{/}
  {?headers}, {headers}{/}
  {?snapshot}, {snapshot}{/}
  {?correlation_id}, {correlation_id}{/}
  {?causation_id}, {causation_id}{/}
  {?partition_key}, {partition_key}{/}
  {?occurred_at}, {occurred_at}{/}) ON {outbox} TO {name:producer};
GRANT SELECT, DELETE ON {outbox} TO {name:relay};
GRANT SELECT, INSERT, DELETE ON {readers}, {batches} TO {name:relay};
GRANT SELECT, INSERT, UPDATE, DELETE ON {exceptions}, {leases}, {workers}, {throughput}, {audit} TO {name:relay};
GRANT SELECT ON {fn:messages} TO {name:relay};
GRANT SELECT ON {meta} TO {name:relay}, {name:producer};
COMMIT;
