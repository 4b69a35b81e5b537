/** One migration step of the schema. Steps are applied once and in order, and never changed after their release. */
export interface Migration {
  /** The number of this migration step; steps are numbered consecutively. */
  number: number
  /**
   * The oldest program version that can use a database after this step. A program version is identified by the number
   * of the last step that it knows.
   */
  oldestProgram: number
  sql: string
}

/**
 * The steps that create the schema. Steps are never reversed. A step may add things that older programs do not use. If
 * a step changes something that they use, it must raise `oldestProgram`, and must be released at least one release
 * after programs have stopped needing it. A function that released programs call keeps its name and meaning; a new
 * version of it gets a new number in its name.
 *
 * Caller ids are TEXT and compared byte by byte, so that an operator can see who is registered; secrets are only in
 * `wrapped_key` and `sealed`. Counters are UNLOGGED: they need no write-ahead log, and are empty after a failover.
 */
export const MIGRATIONS: readonly Migration[] = [
  {
    number: 1,
    oldestProgram: 1,
    sql: `
CREATE TABLE svc_mcp.credentials (
  iss text COLLATE "C" NOT NULL,
  sub text COLLATE "C" NOT NULL,
  version text NOT NULL,
  kek_id text NOT NULL,
  wrapped_key bytea NOT NULL,
  sealed bytea NOT NULL,
  PRIMARY KEY (iss, sub)
);
CREATE TABLE svc_mcp.used_tokens (id text COLLATE "C" PRIMARY KEY, expires_at bigint NOT NULL);
CREATE INDEX used_tokens_by_expiry ON svc_mcp.used_tokens (expires_at);
CREATE TABLE svc_mcp.challenges (
  owner text COLLATE "C" NOT NULL,
  call text COLLATE "C" NOT NULL,
  bound_to text NOT NULL,
  expires_at bigint NOT NULL,
  PRIMARY KEY (owner, call)
);
CREATE INDEX challenges_by_expiry ON svc_mcp.challenges (expires_at);
CREATE TABLE svc_mcp.notes (name text COLLATE "C" PRIMARY KEY, value text NOT NULL);

CREATE UNLOGGED TABLE svc_mcp.replicas (id uuid PRIMARY KEY, expires_at timestamptz NOT NULL);
CREATE UNLOGGED TABLE svc_mcp.places (
  id uuid PRIMARY KEY,
  caller bytea NOT NULL,
  replica uuid NOT NULL,
  taken_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX places_by_caller ON svc_mcp.places (caller);
CREATE UNLOGGED TABLE svc_mcp.counts (
  key bytea PRIMARY KEY,
  started timestamptz NOT NULL,
  hits bigint NOT NULL
) WITH (fillfactor = 50);

-- Counts a request, takes a place for it and finds its caller's record, in one round trip. The row of the count is locked until the
-- end, so that requests of one caller at different replicas are admitted one after the other.
CREATE FUNCTION svc_mcp.admit_1(
  p_key bytea, p_hits bigint, p_most_hits bigint,
  p_place uuid, p_over uuid[], p_most_places integer, p_replica uuid, p_lease interval,
  p_iss text, p_sub text
) RETURNS TABLE (verdict text, retry_after integer, version text, kek_id text, wrapped_key bytea, sealed bytea)
LANGUAGE plpgsql AS $body$
DECLARE
  t timestamptz := clock_timestamp();
  w interval := interval '60 seconds';
  c record;
BEGIN
  INSERT INTO svc_mcp.counts AS k (key, started, hits) VALUES (p_key, t, p_hits)
  ON CONFLICT (key) DO UPDATE SET
    started = CASE WHEN k.started > t - w AND k.started <= t + w THEN k.started ELSE t END,
    hits = CASE WHEN k.started > t - w AND k.started <= t + w THEN k.hits + p_hits ELSE p_hits END
  RETURNING k.started, k.hits INTO c;
  IF p_most_hits > 0 AND c.hits > p_most_hits THEN
    RETURN QUERY SELECT 'rate_limited', greatest(1, ceil(extract(epoch FROM c.started + w - t))::integer),
      NULL::text, NULL::text, NULL::bytea, NULL::bytea;
    RETURN;
  END IF;
  IF p_most_places > 0 THEN
    -- Given back already, by statements that may not have arrived yet.
    DELETE FROM svc_mcp.places p WHERE p.id = ANY(p_over);
    IF (SELECT count(*) FROM svc_mcp.places p JOIN svc_mcp.replicas r ON r.id = p.replica
        WHERE p.caller = p_key AND r.expires_at > t) >= p_most_places THEN
      RETURN QUERY SELECT 'overloaded', NULL::integer, NULL::text, NULL::text, NULL::bytea, NULL::bytea;
      RETURN;
    END IF;
    -- A lease that was not renewed in time, because the database was away, begins again with the first call.
    IF NOT EXISTS (SELECT 1 FROM svc_mcp.replicas r WHERE r.id = p_replica AND r.expires_at > t + p_lease / 3) THEN
      INSERT INTO svc_mcp.replicas AS r (id, expires_at) VALUES (p_replica, t + p_lease)
      ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at;
    END IF;
    INSERT INTO svc_mcp.places (id, caller, replica) VALUES (p_place, p_key, p_replica);
  END IF;
  RETURN QUERY SELECT 'admitted', NULL::integer, f.version, f.kek_id, f.wrapped_key, f.sealed
    FROM (SELECT 1) AS one LEFT JOIN svc_mcp.credentials f ON f.iss = p_iss AND f.sub = p_sub;
END
$body$;

-- Keeps a question, and forgets expired ones and those of its owner beyond p_most.
CREATE FUNCTION svc_mcp.put_challenge_1(
  p_owner text, p_call text, p_bound_to text, p_expires_at bigint, p_now bigint, p_most integer
) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  DELETE FROM svc_mcp.challenges WHERE (owner, call) IN (
    SELECT o.owner, o.call FROM svc_mcp.challenges o WHERE o.expires_at <= p_now ORDER BY o.expires_at LIMIT 100
    FOR UPDATE SKIP LOCKED);
  DELETE FROM svc_mcp.challenges c WHERE c.owner = p_owner AND c.call IN (
    SELECT o.call FROM svc_mcp.challenges o WHERE o.owner = p_owner AND o.call <> p_call
    ORDER BY o.expires_at DESC OFFSET p_most - 1);
  INSERT INTO svc_mcp.challenges AS c (owner, call, bound_to, expires_at)
  VALUES (p_owner, p_call, p_bound_to, p_expires_at)
  ON CONFLICT (owner, call) DO UPDATE SET bound_to = excluded.bound_to, expires_at = excluded.expires_at;
END
$body$;
`,
  },
  {
    number: 2,
    // Programs of earlier releases neither see nor need what this step adds.
    oldestProgram: 1,
    sql: `
CREATE TABLE svc_mcp.approvals (
  id text COLLATE "C" PRIMARY KEY,
  owner text COLLATE "C" NOT NULL,
  call text COLLATE "C" NOT NULL,
  request text NOT NULL,
  decision text,
  ending text,
  is_current boolean NOT NULL,
  expires_at bigint NOT NULL
);
CREATE UNIQUE INDEX approvals_of_call ON svc_mcp.approvals (owner, call) WHERE is_current;
CREATE INDEX approvals_by_expiry ON svc_mcp.approvals (expires_at);

-- Opens a question unless one is open for the call. The lock has one owner's questions open one after the other; a decision that comes
-- while a question is about to be forgotten wins, because the row is looked at again.
CREATE FUNCTION svc_mcp.open_approval_1(
  p_id text, p_owner text, p_call text, p_request text, p_expires_at bigint, p_now bigint, p_instead text,
  p_most_own integer, p_most integer
) RETURNS TABLE (id text, owner text, call text, request text, decision text, ending text, expires_at bigint)
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('approvals of ' || p_owner, 0));
  RETURN QUERY SELECT a.id, a.owner, a.call, a.request, a.decision, a.ending, a.expires_at FROM svc_mcp.approvals a
    WHERE a.owner = p_owner AND a.call = p_call AND a.is_current AND a.ending IS NULL AND a.expires_at > p_now
      AND a.id IS DISTINCT FROM p_instead;
  IF FOUND THEN RETURN; END IF;
  UPDATE svc_mcp.approvals a SET is_current = false WHERE a.owner = p_owner AND a.call = p_call AND a.is_current;
  UPDATE svc_mcp.approvals d SET expires_at = p_now WHERE d.decision IS NULL AND d.ending IS NULL AND d.id IN (
    SELECT a.id FROM svc_mcp.approvals a WHERE a.decision IS NULL AND a.ending IS NULL AND a.owner = p_owner
    ORDER BY a.expires_at DESC OFFSET p_most_own - 1);
  UPDATE svc_mcp.approvals d SET expires_at = p_now WHERE d.decision IS NULL AND d.ending IS NULL AND d.id IN (
    SELECT a.id FROM svc_mcp.approvals a WHERE a.decision IS NULL AND a.ending IS NULL
    ORDER BY a.expires_at DESC OFFSET p_most - 1);
  RETURN QUERY INSERT INTO svc_mcp.approvals AS n (id, owner, call, request, is_current, expires_at)
    VALUES (p_id, p_owner, p_call, p_request, true, p_expires_at)
    RETURNING n.id, n.owner, n.call, n.request, n.decision, n.ending, n.expires_at;
END
$body$;
`,
  },
  {
    number: 3,
    // Programs of earlier releases neither see nor need what this step adds.
    oldestProgram: 1,
    sql: `
-- Every used id once more, beside its row in used_tokens or approvals.
CREATE TABLE svc_mcp.spent (id text COLLATE "C" PRIMARY KEY, expires_at bigint NOT NULL);
CREATE INDEX spent_by_expiry ON svc_mcp.spent (expires_at);

-- admit_1, which waits no longer than this for a row that somebody has locked.
CREATE FUNCTION svc_mcp.admit_2(
  p_key bytea, p_hits bigint, p_most_hits bigint,
  p_place uuid, p_over uuid[], p_most_places integer, p_replica uuid, p_lease interval,
  p_iss text, p_sub text
) RETURNS TABLE (verdict text, retry_after integer, version text, kek_id text, wrapped_key bytea, sealed bytea)
LANGUAGE sql SET lock_timeout = '1s' AS $body$
  SELECT * FROM svc_mcp.admit_1(
    p_key, p_hits, p_most_hits, p_place, p_over, p_most_places, p_replica, p_lease, p_iss, p_sub)
$body$;

-- The time limits of these functions are shorter than those of the programs that call them, so that nothing is left here that waits for a
-- lock after its program has given up.

-- Writes a new note to see that writing is possible, and removes earlier ones unless they are locked.
CREATE FUNCTION svc_mcp.check_write_1(p_id text) RETURNS void LANGUAGE sql SET lock_timeout = '2s' AS $body$
  WITH earlier AS (
    DELETE FROM svc_mcp.notes WHERE name IN (
      SELECT name FROM svc_mcp.notes WHERE name >= 'checked' AND name < 'checkee' LIMIT 100 FOR UPDATE SKIP LOCKED))
  INSERT INTO svc_mcp.notes (name, value) VALUES ('checked ' || p_id, '')
$body$;

-- Records that a token is used, and returns whether it was not. One that expires no later than p_forgotten_until counts as used.
CREATE FUNCTION svc_mcp.claim_token_1(p_id text, p_expires_at bigint, p_forgotten_until bigint) RETURNS boolean
LANGUAGE sql SET lock_timeout = '4s' AS $body$
  WITH spent AS (
    INSERT INTO svc_mcp.spent (id, expires_at) SELECT p_id, p_expires_at
    WHERE p_forgotten_until IS NULL OR p_forgotten_until < p_expires_at
    ON CONFLICT (id) DO NOTHING RETURNING id, expires_at),
  used AS (
    INSERT INTO svc_mcp.used_tokens (id, expires_at) SELECT id, expires_at FROM spent
    ON CONFLICT (id) DO NOTHING RETURNING id)
  SELECT count(*) = 1 FROM used
$body$;

-- Ends an approval, and returns whether it had not ended. The end is recorded in two tables, so that it cannot be reversed by changing
-- one row.
CREATE FUNCTION svc_mcp.end_approval_1(p_id text, p_ending text, p_now bigint) RETURNS boolean
LANGUAGE sql SET lock_timeout = '4s' AS $body$
  WITH ended AS (
    UPDATE svc_mcp.approvals SET ending = p_ending WHERE id = p_id AND ending IS NULL RETURNING id, expires_at),
  spent AS (
    INSERT INTO svc_mcp.spent (id, expires_at) SELECT id, greatest(expires_at, p_now) FROM ended
    ON CONFLICT (id) DO NOTHING RETURNING id)
  SELECT count(*) = 1 FROM spent
$body$;
`,
  },
  {
    number: 4,
    // Programs of earlier releases neither see nor need what this step adds.
    oldestProgram: 1,
    sql: `
CREATE TABLE svc_mcp.outbox (
  id text COLLATE "C" PRIMARY KEY,
  body text NOT NULL,
  created_at bigint NOT NULL,
  due_at bigint NOT NULL,
  attempts integer NOT NULL DEFAULT 0
);
CREATE INDEX outbox_by_due ON svc_mcp.outbox (due_at);
`,
  },
  {
    number: 5,
    // Programs of earlier releases neither see nor need what this step adds.
    oldestProgram: 1,
    sql: `
-- The first approval of a call that needs two; decision is the second one.
ALTER TABLE svc_mcp.approvals ADD COLUMN first_decision text;
`,
  },
]

/** The number of the last migration step that this program knows. */
export const PROGRAM_SCHEMA = MIGRATIONS.length
