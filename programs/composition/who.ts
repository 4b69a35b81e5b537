import { escapeText } from '../../domain/text/escape-text.js'
import type { Owner } from '../../schemas/caller.js'
import type { StateKeysConfig } from '../../schemas/config.js'
import type { LastUse, Revocation, SealedCredentials, State } from '../../schemas/state.js'
import { identifyKeys, type Keys, openCredentials } from '../../storage/keystore/envelope.js'
import { people } from '../../storage/people.js'
import { type AuditedCommandParts, runAudited } from './audited-command.js'
import type { CommandReport } from './command-report.js'

/** The options of the command. */
export interface WhoOptions {
  /** If true, only people with PCE credentials on this server are listed. */
  registered?: boolean
  /** If true, only people whose access is currently revoked are listed. */
  revoked?: boolean
  /** Only people who were not seen for this number of days, or never, are listed. */
  idleDays?: number
  /** Maximum number of people who are listed. */
  limit: number
}

/** A person in the list. Times are RFC 3339 in UTC; null means that there is no value or it is not known. */
export interface KnownPerson extends Owner {
  /** The person's name, as the identity provider gave it when the person was last seen. */
  name: string | null
  is_registered: boolean
  /** Host and port of the PCE that the person registered. */
  pce_host: string | null
  /**
   * The reason why the PCE of a registered person is not shown: MCP_KEK was not given, or it does not open the
   * credentials.
   */
  pce_host_unknown?: 'no key' | 'unreadable'
  registered_at: string | null
  /** When the person was last seen, accurate to five minutes. */
  last_use: string | null
  is_revoked: boolean
  /** The end of the latest revocation, which may be in the past; null if there is no revocation or it has no end. */
  revoked_until: string | null
}

/** The people that a state contains and that match the filters. Those seen last come first. */
export interface WhoAnswer {
  mode: StateKeysConfig['mode']
  as_of: string
  /** Number of people who match the filters. `people` may contain only the first of them. */
  total: number
  /** False if the state contains more people than are read. */
  is_complete: boolean
  people: KnownPerson[]
}

/** Maximum number of people who are read. */
const MOST_READ = 100_000
const PAGE = 500
const DAY_MS = 24 * 60 * 60 * 1000

interface Facts {
  owner: Owner
  record?: SealedCredentials
  use?: LastUse
  revocation?: Revocation
}

/**
 * Runs `svc-mcp-http who`: lists the people whom the state contains because they registered PCE credentials, used a
 * server, or were revoked. The command changes nothing, writes an audit entry, and shows no secrets. It decrypts
 * credentials only of listed people, and only to show the host. Rejects as `runAudited` does.
 *
 * @returns the report, and the answer unless the state could not be read.
 */
export async function listPeople(
  config: StateKeysConfig,
  options: WhoOptions,
  parts: AuditedCommandParts,
): Promise<{ report: CommandReport; answer?: WhoAnswer }> {
  const at = (parts.now ?? Date.now)()
  let answer: WhoAnswer | undefined
  const report = await runAudited(
    config,
    {
      name: 'who',
      verb: 'list',
      async run(state) {
        answer = await readPeople(state, config, options, at)
        return { listed: answer.people.length }
      },
      failed: 'Nobody can be listed',
      tell: () => Promise.resolve(),
    },
    parts,
  )
  return { report, ...(answer && { answer }) }
}

async function readPeople(
  state: State,
  { mode, kek, previousKek }: StateKeysConfig,
  { limit, ...filters }: WhoOptions,
  at: number,
): Promise<WhoAnswer> {
  const { all, isComplete } = await collect(state)
  const found = all.filter((facts) => isWanted(facts, filters, at)).sort(byLastUse)
  const keys = kek === undefined ? null : identifyKeys(kek, previousKek)
  const listed: KnownPerson[] = []
  for (const facts of found.slice(0, limit)) listed.push(await describe(facts, { state, keys, at }))
  return { mode, as_of: timeOf(at), total: found.length, is_complete: isComplete, people: listed }
}

/** Reads all people for whom the state contains a record or a note of use. */
async function collect({ credentials, notes, revocations }: State): Promise<{ all: Facts[]; isComplete: boolean }> {
  const byOwner = new Map<string, Facts>()
  let isComplete = true
  const note = (owner: Owner, facts: Partial<Facts>): void => {
    const key = JSON.stringify([owner.iss, owner.sub])
    const known = byOwner.get(key)
    if (known !== undefined) Object.assign(known, facts)
    else if (byOwner.size < MOST_READ) byOwner.set(key, { owner, ...facts })
    else isComplete = false
  }
  for (let after: Owner | null | undefined = null; after !== undefined;) {
    const page = await credentials.page(after, PAGE)
    for (const { owner, record } of page) note(owner, { record })
    after = page.length < PAGE || !isComplete ? undefined : page.at(-1)!.owner
  }
  for await (const { owner, revocation } of revocations.all()) note(owner, { revocation })
  for await (const { owner, use } of people(notes).allUses()) note(owner, { use })
  return { all: [...byOwner.values()], isComplete }
}

function isWanted({ record, use, revocation }: Facts, filters: Omit<WhoOptions, 'limit'>, at: number): boolean {
  if (filters.registered === true && record === undefined) return false
  if (filters.revoked === true && (revocation?.until ?? 0) <= at) return false
  return filters.idleDays === undefined || use === undefined || at - use.at >= filters.idleDays * DAY_MS
}

/** Compares two people for sorting. Those seen last come first, and those never seen come last. */
function byLastUse(one: Facts, other: Facts): number {
  const difference = (other.use?.at ?? -Infinity) - (one.use?.at ?? -Infinity)
  if (difference !== 0 && !Number.isNaN(difference)) return difference
  return compare(one.owner.iss, other.owner.iss) || compare(one.owner.sub, other.owner.sub)
}

const compare = (one: string, other: string): number => Number(one > other) - Number(one < other)

async function describe(
  { owner, record, use, revocation }: Facts,
  { state, keys, at }: { state: State; keys: Keys | null; at: number },
): Promise<KnownPerson> {
  const registration = record === undefined ? null : await people(state.notes).registration(owner)
  const until = revocation?.until ?? null
  return {
    ...owner,
    name: use?.name ?? null,
    is_registered: record !== undefined,
    ...hostOf(owner, record, keys),
    // If the stored time belongs to an earlier registration, it says nothing about the present one.
    registered_at: registration?.version === record?.version && registration ? timeOf(registration.at) : null,
    last_use: use === undefined ? null : timeOf(use.at),
    is_revoked: until !== null && until > at,
    revoked_until: until === null || until > LATEST ? null : timeOf(until),
  }
}

/** The latest time that a Date can hold, in milliseconds since the epoch. */
const LATEST = 8.64e15
const timeOf = (at: number): string => new Date(at).toISOString()

function hostOf(
  owner: Owner,
  record: SealedCredentials | undefined,
  keys: Keys | null,
): Pick<KnownPerson, 'pce_host' | 'pce_host_unknown'> {
  if (record === undefined) return { pce_host: null }
  if (keys === null) return { pce_host: null, pce_host_unknown: 'no key' }
  try {
    const { host, port } = openCredentials(keys, owner, record)
    return { pce_host: `${host.includes(':') ? `[${host}]` : host}:${port}` }
  } catch {
    return { pce_host: null, pce_host_unknown: 'unreadable' }
  }
}

const HEADS = ['NAME', 'SUBJECT', 'ISSUER', 'PCE', 'REGISTERED', 'LAST USE', 'REVOKED UNTIL']

/** Renders the answer as a table for a terminal, in which no name can contain control characters. */
export function renderPeople({ people, total, mode, is_complete: isComplete }: WhoAnswer): string {
  const rows = [HEADS, ...people.map(rowOf)].map((row) => row.filter((_, n) => mode === 'per_user' || !OF_KEYS.has(n)))
  const widths = rows[0]!.map((_, n) => Math.max(...rows.map((row) => [...row[n]!].length)))
  const lines = rows.map((row) =>
    row
      .map((cell, n) => cell + ' '.repeat(widths[n]! - [...cell].length))
      .join('  ')
      .trimEnd(),
  )
  const count = total === 1 ? '1 person' : `${total} people`
  const shown = people.length < total ? `The first ${people.length} of ${count}: --limit lists more.` : `${count}.`
  const rest = isComplete ? [] : [`Only ${MOST_READ} people were read; there are more.`]
  const sealed = people.some((person) => person.pce_host_unknown === 'no key') ? [WITHOUT_KEY] : []
  const shared =
    mode === 'shared' ? ['In shared mode nobody registers: these people used the servers, or were revoked.'] : []
  return [...(people.length === 0 ? [] : [...lines, '']), shown, ...rest, ...sealed, ...shared, ''].join('\n')
}

const WITHOUT_KEY = 'The hosts of PCEs are sealed: set MCP_KEK as on the servers to see them.'
/** The columns that appear only if PCE keys of people are shown. */
const OF_KEYS: ReadonlySet<number> = new Set([3, 4])

const UNKNOWN = { 'no key': '(sealed)', unreadable: '(unreadable)' } as const

function rowOf(person: KnownPerson): string[] {
  const { name, sub, iss, is_registered: isRegistered } = person
  const host = person.pce_host ?? (person.pce_host_unknown === undefined ? '-' : UNKNOWN[person.pce_host_unknown])
  const registered = person.registered_at ?? (isRegistered ? 'not known' : '-')
  const revoked = person.is_revoked ? (person.revoked_until ?? 'further notice') : '-'
  return [name ?? '-', sub, iss, host, registered, person.last_use ?? 'not known', revoked].map(escapeText)
}
