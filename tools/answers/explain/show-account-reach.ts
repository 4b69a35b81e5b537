import { Type, type Static } from '@sinclair/typebox'
import type { DecidedTraffic } from '../../../domain/policy/decide-traffic.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { quote } from '../../../domain/text/escape-text.js'
import { ACCOUNT_TYPES } from '../../../domain/traffic/classify-account.js'
import type { AccountReach, Reach, Reached } from '../../../domain/traffic/reach-of-accounts.js'
import { describeReading, Reading, type FlowsRead } from '../../../domain/traffic/read-flows.js'
import { AssumesOut, explainAssumed, showAssumed } from '../../../schemas/assumes.js'
import { Count, Counts, Flag, StringEnum, Text } from '../../../schemas/common.js'
import type { Limits } from '../../../schemas/config.js'
import { showSections, Truncation } from '../byte-budget.js'

const Destinations = (description: string) =>
  Type.Array(
    Type.Object({
      to: Text('Application, host, domain name or address'),
      ports: Type.Array(Type.String(), { description: 'Busiest first; 5 at most, 50 where one account was asked for' }),
      connections: Count('In the window, blocked ones included'),
      policy: Text('What policy decides about them; blocked alone is no reach, and in no count'),
    }),
    { description },
  )
const LeftOut = (description: string) => Counts(`{rows, connections} ${description}`)

const Person = Type.Object({
  account: Text('As most of its rows have it, with its realm'),
  type: StringEnum(ACCOUNT_TYPES, { description: 'What uses it' }),
  certain: Flag('Its form leaves no doubt of the type; otherwise it is a guess'),
  why: Text('Why this type'),
  spellings: Type.Optional(
    Type.Array(Type.String(), { description: 'The same account for certain: case alone differs' }),
  ),
  may_be_same: Type.Optional(
    Type.Array(
      Type.Object({ account: Text('Counted along'), connections: Count('Of it alone'), why: Text('Why it is merged') }),
      { description: 'Merged without certainty' },
    ),
  ),
  not_merged: Type.Optional(
    Type.Array(Type.String(), { description: 'The same name, in realms that may not be the same' }),
  ),
  inside: Count('Applications and hosts reached: the list is sorted by this, then by ports'),
  applications: Count('Reached'),
  hosts: Count('Reached, of the inventory without an application'),
  external: Count('Destinations reached outside the inventory'),
  ports: Count('Distinct ports and protocols reached'),
  from_hosts: Count('Sources it was seen on'),
  connections: Count('Of all its accounts, blocked ones included'),
  blocked_connections: Count('Of these, blocked by policy'),
  processes: Type.Array(Type.String(), { description: 'File names of the busiest 3' }),
  reaches: Destinations('Applications, then hosts, busiest first'),
  reaches_total: Type.Optional(Count('Of reaches, where not all are shown')),
  reaches_external: Destinations('Destinations outside the inventory'),
  reaches_external_total: Type.Optional(Count('Of reaches_external, where not all are shown')),
})

/** The answer of identity-reach. */
export const AccountReachOutput = Type.Object({
  summary: Text('In a sentence'),
  people_total: Count('Accounts after merging, that match; shown or not'),
  by_type: Counts('All of the window by type; certain_service of these beyond doubt'),
  people: Type.Array(Person, { description: 'The widest first: most inside, then ports' }),
  without_account: LeftOut('reported by the source without an account: whoever made them is in no count'),
  of_listeners: LeftOut('reported by the destination: their account is that of the program that listens'),
  undirected: LeftOut('without the end that reported them'),
  near_names: Type.Optional(Type.Array(Type.String(), { description: 'Accounts of a similar name' })),
  notes: Type.Array(Type.String(), { description: 'What the counts rest on' }),
  ...Reading,
  ...AssumesOut,
  ...Truncation,
})

/** A person, with those of the person's destinations that are shown. */
export interface PersonShown {
  reach: Reach
  destinations: readonly Reached[]
}

interface Shown {
  reach: AccountReach
  /** The people who match, those with the most destinations first. */
  people: readonly Reach[]
  /** The first of these people, with their destinations. */
  shown: readonly PersonShown[]
  /** The account that the caller asked about; undefined if there is none. */
  account: string | undefined
  nearNames: readonly string[]
  decided: DecidedTraffic | null
  read: FlowsRead
}

/** Maximum size, in bytes, of an answer about the accounts that reach most, unless the caller asks for more. */
const STANDARD_BYTES = 8_000

/** Number of bytes reserved for the note on which destinations of an account were left out. */
const NOTE_BYTES = 300
/** Maximum number of accounts that the summary names when several accounts reach equally many destinations. */
const MOST_TIED = 3

/** Builds the answer. For a single account, it has all destinations that fit; otherwise five for each person. */
export function showAccountReach(
  { reach, people, shown, account, nearNames, decided, read }: Shown,
  detail: 'standard' | 'full',
  limits: Limits,
): Static<typeof AccountReachOutput> {
  const isOne = account !== undefined
  const most = isOne ? { destinations: detail === 'full' ? 500 : 25, ports: 50 } : { destinations: 5, ports: 5 }
  const bytes =
    detail === 'standard' ? Math.min(STANDARD_BYTES, limits.responseBudgetBytes) : limits.responseBudgetBytes
  const answer = showSections(
    {
      summary: summarise(reach, people, account),
      people_total: people.length,
      by_type: countTypes(reach.people),
      without_account: { ...reach.withoutAccount },
      of_listeners: { ...reach.ofListeners },
      undirected: { ...reach.undirected },
      ...(nearNames.length > 0 && { near_names: [...nearNames] }),
      notes: notesOf(people, decided),
      ...describeReading(read),
      ...showAssumed(decided?.assumes ?? []),
    },
    { people: { total: people.length, rows: shown.map((one) => showPerson(one, most)) } },
    {
      detail,
      asked: Math.max(1, shown.length),
      limits: { ...limits, responseBudgetBytes: isOne ? bytes - NOTE_BYTES : bytes },
      hint: (longest, isFull) =>
        `${longest} of ${people.length} are shown. ${!isFull ? 'Raise limit.' : detail === 'standard' ? 'detail_level full shows more.' : 'account shows more of one.'}`,
    },
  )
  return isOne ? { ...answer, ...tellCut(answer, detail) } : answer
}

/** Returns what was cut, including the lists of destinations, and how to see more. */
function tellCut(
  { people, ...cut }: Truncation & { people: Static<typeof Person>[] },
  detail: 'standard' | 'full',
): Truncation {
  const lists = (['reaches', 'reaches_external'] as const).filter((list) =>
    people.some((one) => one[`${list}_total`] !== undefined),
  )
  if (lists.length === 0) return {}
  const told = lists.map((list) => {
    const all = people.reduce((sum, one) => sum + (one[`${list}_total`] ?? one[list].length), 0)
    return `${list} shows ${people.reduce((sum, one) => sum + one[list].length, 0)} of ${all}`
  })
  const more = detail === 'standard' ? 'detail_level full shows more' : 'include_destinations narrows it'
  return {
    truncated_sections: [...(cut.truncated_sections ?? []), ...lists],
    truncation_note: [
      ...(cut.truncation_note === undefined ? [] : [cut.truncation_note]),
      `${told.join(', ')}: ${more}.`,
    ].join(' '),
  }
}

function showPerson(
  { reach, destinations }: PersonShown,
  most: { destinations: number; ports: number },
): Static<typeof Person> {
  const { person, class: of, reached } = reach
  const inside = destinations.filter(({ kind }) => kind !== 'external')
  const outside = destinations.filter(({ kind }) => kind === 'external')
  const show = (all: readonly Reached[]) =>
    all.slice(0, most.destinations).map(({ to, ports, connections, policy }) => ({
      to,
      ports: ports.slice(0, most.ports),
      connections,
      policy: policy.join('+'),
    }))
  const { spellings, aliases, namesakes } = person
  return {
    account: person.main.text,
    type: of.type,
    certain: of.isCertain,
    why: of.why,
    ...(spellings.length > 0 && { spellings: spellings.map(({ text }) => text) }),
    ...(aliases.length > 0 && {
      may_be_same: aliases.map(({ account, why }) => ({
        account: account.text,
        connections: reach.connectionsOf.get(account) ?? 0,
        why,
      })),
    }),
    ...(namesakes.length > 0 && { not_merged: namesakes.map(({ text }) => text) }),
    inside: reached.application + reached.host,
    applications: reached.application,
    hosts: reached.host,
    external: reached.external,
    ports: reach.ports,
    from_hosts: reach.hosts,
    connections: reach.connections,
    blocked_connections: reach.blockedConnections,
    processes: [...reach.programs],
    reaches: show(inside),
    ...(inside.length > most.destinations && { reaches_total: inside.length }),
    reaches_external: show(outside),
    ...(outside.length > most.destinations && { reaches_external_total: outside.length }),
  }
}

function countTypes(people: readonly Reach[]): Record<string, number> {
  const count = (isCounted: (one: Reach) => boolean) => people.filter(isCounted).length
  return {
    ...Object.fromEntries(ACCOUNT_TYPES.map((type) => [type, count((one) => one.class.type === type)])),
    certain_service: count((one) => one.class.type === 'service' && one.class.isCertain),
  }
}

const insideOf = ({ reached }: Reach): number => reached.application + reached.host

function summarise({ people: all }: AccountReach, people: readonly Reach[], account: string | undefined): string {
  const [widest] = people
  if (widest === undefined) {
    const what = account === undefined ? 'No account' : `No account ${quote(account)}`
    return `${what} among the ${all.length} that sources reported in the window.`
  }
  const { person, class: of, reached, hosts } = widest
  const type = `${of.isCertain ? '' : 'probably '}${of.type}`
  const name = `${quote(person.main.text)} (${of.type === 'unknown' ? 'unknown type' : type})`
  const own = `${countOf(reached.application, 'application')}, ${countOf(reached.host, 'other host')} and ${countOf(reached.external, 'external destination')} from ${countOf(hosts, 'host')}.`
  if (account !== undefined) return `Account ${name}: ${own}`
  const among = people.length === all.length ? '' : ` (of ${all.length} in the window)`
  const outward = people.reduce((most, one) => (one.reached.external > most.reached.external ? one : most), widest)
  const most =
    outward === widest
      ? ''
      : ` Most external destinations: ${quote(outward.person.main.text)} (${outward.reached.external}).`
  const others = people.filter((one) => one !== widest && insideOf(one) === insideOf(widest))
  const names = others.length < MOST_TIED ? others.map((one) => quote(one.person.main.text)).join(' and ') : ''
  const tied = others.length === 0 ? '' : ` Just as many: ${names || `${others.length} others`}.`
  return `Of ${countOf(people.length, 'account')}${among}, ${name} reaches most inside, ${insideOf(widest)}: ${own}${tied}${most}`
}

function notesOf(people: readonly Reach[], decided: DecidedTraffic | null): string[] {
  const merged = people.filter(({ person }) => person.aliases.length > 0).length
  return [
    'Reach is what was seen and policy does not block today, in the modes of today.',
    ...(merged > 0
      ? [
          `${countOf(merged, 'account')} ${merged === 1 ? 'counts' : 'count'} others along that only may be the same (may_be_same).`,
        ]
      : []),
    'A name without a realm may be another account on each host.',
    ...(decided !== null && decided.undecided.rows > 0
      ? [`${countOf(decided.undecided.rows, 'row')} shown as unknown count as reached: ${decided.because}.`]
      : []),
    ...(decided?.modes ?? []),
    ...explainAssumed(decided?.assumes ?? []),
  ]
}
