import { Type, type Static } from '@sinclair/typebox'
import { Count, Nullable, StringEnum, Text } from '../../../schemas/common.js'
import { portKey, type Listener, type ListeningWorkload, type Talk } from '../../../domain/hygiene/find-listeners.js'
import { protocolName } from '../../../domain/inventory/protocols.js'
import { compareTexts } from '../../../domain/text/compare-texts.js'

/** Maximum number of names listed in a row. */
const MOST_NAMES = 3

export const LISTENER_USES = ['unused', 'not_known', 'used'] as const

export const ListenerOut = Type.Object({
  port: Type.Integer(),
  proto: Type.String(),
  process: Nullable(Text('As reported; null: not told')),
  windows_service: Type.Optional(Text('Its name')),
  users: Type.Optional(Type.Array(Type.String(), { description: 'It runs as, the first 3' })),
  use: StringEnum(LISTENER_USES, {
    description:
      'unused: nobody talked to it on any of them; not_known: nobody was seen, and on some silence proves nothing',
  }),
  workloads: Count('That have it'),
  silent: Type.Optional(Count('Of these, where nobody talked to it, for certain')),
  silent_on: Type.Optional(Type.Array(Type.String(), { description: 'Names, the first 3' })),
  not_known: Type.Optional(Count('Of these, where nobody was seen and silence proves nothing')),
  not_known_on: Type.Optional(Type.Array(Type.String(), { description: 'Names, the first 3' })),
  connections: Count('To it, whatever was decided about them'),
  last_seen: Nullable(Text('UTC; null: nobody was seen')),
})
export type ListenerRow = Static<typeof ListenerOut>

interface Gathered extends Listener {
  users: Set<string>
  workloads: number
  silent: string[]
  unsure: string[]
  connections: number
  last: number
}

/**
 * Groups listeners by port, protocol and process over all workloads. Unused listeners come first, then those that may
 * be unused; within both groups, those on the most workloads come first.
 *
 * @param isCut true if not all traffic was read, so that a lack of traffic proves nothing.
 */
export function showListeners(
  workloads: readonly ListeningWorkload[],
  talk: ReadonlyMap<string, Talk>,
  isCut: boolean,
): ListenerRow[] {
  const rows = new Map<string, Gathered>()
  for (const { href, name, listeners, doubts } of workloads) {
    const isUnsure = isCut || doubts.length > 0
    // A process that listens on several addresses counts as one listener.
    const own = new Map(listeners.map((one) => [idOf(one), one]))
    for (const [id, one] of own) {
      const row = rows.get(id) ?? {
        ...one,
        users: new Set(),
        workloads: 0,
        silent: [],
        unsure: [],
        connections: 0,
        last: 0,
      }
      rows.set(id, row)
      const said = talk.get(portKey(href, one))
      row.workloads += 1
      if (one.user !== null) row.users.add(one.user)
      if (said === undefined && isUnsure) row.unsure.push(name)
      else if (said === undefined) row.silent.push(name)
      row.connections += said?.connections ?? 0
      row.last = Math.max(row.last, said?.last ?? 0)
    }
  }
  return [...rows.values()].map(toRow).sort(unusedFirst)
}

const idOf = ({ port, proto, process, windowsService }: Listener): string =>
  JSON.stringify([proto, port, process, windowsService])

function toRow({
  port,
  proto,
  process,
  windowsService,
  users,
  workloads,
  silent,
  unsure,
  connections,
  last,
}: Gathered): ListenerRow {
  const use =
    silent.length === workloads ? 'unused' : silent.length + unsure.length === workloads ? 'not_known' : 'used'
  return {
    port,
    proto: protocolName(proto),
    process,
    ...(windowsService !== null && { windows_service: windowsService }),
    ...(users.size > 0 && { users: [...users].sort(compareTexts).slice(0, MOST_NAMES) }),
    use,
    workloads,
    ...(silent.length > 0 && { silent: silent.length, silent_on: silent.sort(compareTexts).slice(0, MOST_NAMES) }),
    ...(unsure.length > 0 && {
      not_known: unsure.length,
      not_known_on: unsure.sort(compareTexts).slice(0, MOST_NAMES),
    }),
    connections,
    last_seen: last === 0 ? null : new Date(last).toISOString(),
  }
}

const unusedFirst = (a: ListenerRow, b: ListenerRow): number =>
  LISTENER_USES.indexOf(a.use) - LISTENER_USES.indexOf(b.use) ||
  (b.silent ?? 0) - (a.silent ?? 0) ||
  b.workloads - a.workloads ||
  a.port - b.port ||
  compareTexts(a.proto, b.proto) ||
  compareTexts(a.process ?? '', b.process ?? '')
