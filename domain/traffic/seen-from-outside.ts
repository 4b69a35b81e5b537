import ipaddr from 'ipaddr.js'
import { PceError } from '../../pce-client/index.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { ToolError } from '../../schemas/errors.js'
import { OddListError, pickEvery } from '../inventory/fetch-every.js'
import { addressFilter } from '../inventory/match-exactly.js'
import { isAddress } from '../inventory/parse-addresses.js'
import { parseHref } from '../inventory/parse-href.js'
import { isManaged } from '../inventory/workloads.js'
import { quote } from '../text/escape-text.js'
import { workInTurns } from '../text/pace-work.js'
import type { AskContext } from './ask-flows.js'
import type { FlowEncoder, FlowRow } from './encode-flow.js'
import { holdRows } from './hold-rows.js'

/** Counts the rows with an address that was seen only from off the corporate network (P107). */
export interface SeenFromOutside {
  /**
   * Number of rows with an address that was seen only from off the corporate network and that a managed workload also
   * has. If the workloads could not be read, all rows with an address seen only from off that network are counted.
   */
  rows: number
  /** The reason why the workloads could not be read; null if they were read or did not need to be. */
  unread: string | null
}

/** Maximum number of addresses that are looked up one by one; if there are more, all managed workloads are read. */
const MOST_LOOKED_UP = 5

/**
 * Creates a receiver that passes rows on at once, except rows with an address that was seen only from off the corporate
 * network. These rows wait until it is known which of their addresses managed workloads have.
 */
export function takeFromOutside(
  ctx: Pick<AskContext, 'pce' | 'signal'>,
  { ends }: FlowEncoder,
  take: (row: FlowRow) => void,
): { add(row: FlowRow): void; finish(): Promise<SeenFromOutside> } {
  const held = holdRows()
  let rows = 0
  const pass = (row: FlowRow) => {
    if (ends.end(row.src).bearer != null || ends.end(row.dst).bearer != null) rows += row.count
    take(row)
  }
  let waiting = 0
  return {
    add(row) {
      if (!ends.isOpen(row.src) && !ends.isOpen(row.dst)) return pass(row)
      waiting += row.count
      held.add(row, row.count === 1)
    },
    async finish() {
      const addresses = ends.openAddresses()
      const read = addresses.size === 0 ? new Map<string, string>() : await readBearers(ctx, addresses)
      const unread = typeof read === 'string' ? read : null
      ends.close((address) => (typeof read === 'string' ? null : (read.get(spell(address)) ?? null)))
      const replay = held.replay((row, isCounted) => {
        row.count = row.reports = isCounted ? 1 : 0
        pass(row)
      })
      await workInTurns(replay, ctx.signal)
      return { rows: unread === null ? rows : rows + waiting, unread }
    },
  }
}

const spell = (address: string): string => (isAddress(address) ? ipaddr.process(address).toString() : address)

/**
 * Returns the names of the managed workloads by address, for those of the given addresses that such workloads have; or
 * the reason why the workloads could not be read.
 */
async function readBearers(
  { pce, signal }: Pick<AskContext, 'pce' | 'signal'>,
  addresses: ReadonlySet<string>,
): Promise<Map<string, string> | string> {
  const wanted = new Set([...addresses].map(spell))
  const names = new Map<string, Set<string>>()
  const look = (workload: Workload): undefined => {
    if (parseHref(workload.href)?.kind !== 'workloads') throw new OddListError('workloads')
    if (workload.deleted === true || !isManaged(workload)) return
    for (const { address } of workload.interfaces ?? []) {
      const own = address === undefined ? '' : spell(address)
      if (wanted.has(own))
        names.set(own, (names.get(own) ?? new Set()).add(workload.name ?? workload.hostname ?? workload.href))
    }
  }
  const each =
    wanted.size <= MOST_LOOKED_UP
      ? [...wanted].map((address) => ({ ip_address: addressFilter(true, address) }))
      : [{ managed: true }]
  try {
    for (const params of each) await pickEvery({ api: pce.workloads, params, signal }, look)
  } catch (error) {
    if (signal.aborted || !(error instanceof PceError || error instanceof ToolError)) throw error
    return error.message
  }
  return new Map([...names].map(([address, of]) => [address, tellNames([...of].sort())]))
}

const tellNames = ([first, ...others]: readonly string[]): string =>
  `${quote(first as string)}${others.length === 0 ? '' : ` or ${others.length} more`}`
