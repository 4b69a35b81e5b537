import { PceError } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { ToolContext } from '../call.js'
import { scanEvery } from '../inventory/fetch-every.js'
import { mapBounded } from '../text/pace-work.js'
import { readWork } from './join-workload.js'

/** What is known about the times at which an agent could report traffic. Times are in milliseconds since the epoch. */
interface Agent {
  /** True if the PCE considers the agent offline or its VEN not active; null if the PCE does not say. */
  isAway: boolean | null
  /** The last heartbeat; NaN if it is not known. */
  heardAt: number
  /** The time at which the agent was paired; NaN if it is not known. */
  pairedAt: number
  /** True in idle mode, in which an agent reports only some of its traffic. */
  isIdle: boolean
}

/** The agents of workloads as the PCE describes them now. Their earlier state can only be inferred from this. */
export interface AgentWatch {
  /** Reads the agents of these workloads, or all agents if the argument is absent. If this fails, `notes` says so. */
  look(hrefs?: ReadonlySet<string>): Promise<void>
  /**
   * Returns whether the agent could report traffic during a whole window. False if it went offline before the window's
   * end or was paired after its start; null if the PCE does not say.
   */
  reportedIn(href: string, window: { start: number; end: number }): boolean | null
  isIdle(href: string): boolean
  /** Sentences about what could not be read. */
  notes(): string[]
}

/** Maximum number of workloads that are read one by one. If there are more, the list of workloads is read. */
const MOST_LOOKED_UP = 20
/** Maximum number of workloads that are read from the list. */
const MOST_WORKLOADS = 50_000
const IN_FLIGHT = 5

/** Creates a watch that knows nothing until `look` is called. */
export function watchAgents({ pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>): AgentWatch {
  const agents = new Map<string, Agent>()
  let isListed = false
  const unread = new Set<string>()
  const add = (workload: Workload): void => void agents.set(workload.href, readAgent(workload))
  const readOne = async (href: string): Promise<void> => {
    try {
      add(await pce.workloads.getByReference(href, { signal }))
    } catch (error) {
      giveUp(error)
    }
  }
  const giveUp = (error: unknown): void => {
    if (signal.aborted || !(error instanceof PceError || error instanceof ToolError)) throw error
    unread.add(error.message.replace(/\.$/u, ''))
  }
  const readAll = async (): Promise<void> => {
    isListed = true
    try {
      const { isWhole } = await scanEvery(
        { api: pce.workloads, params: { managed: true }, signal },
        { most: MOST_WORKLOADS, onItems: (items: Workload[]) => items.forEach(add) },
      )
      if (!isWhole) unread.add(`only ${agents.size} workloads were read`)
    } catch (error) {
      giveUp(error)
    }
  }
  return {
    async look(hrefs) {
      const wanted = hrefs && [...hrefs].filter((href) => !agents.has(href))
      if (isListed || wanted?.length === 0) return
      if (wanted === undefined || agents.size + wanted.length > MOST_LOOKED_UP) return readAll()
      await mapBounded(wanted, IN_FLIGHT, readOne)
    },
    reportedIn(href, { start, end }) {
      const agent = agents.get(href)
      if (agent === undefined) return null
      if (agent.pairedAt > start) return false
      if (agent.isAway === false) return true
      // Comparisons with NaN are false. If the last heartbeat is not known, it is therefore not known whether the agent
      // was away.
      if (agent.isAway === true && agent.heardAt >= end) return true
      return agent.isAway === true && agent.heardAt < end ? false : null
    },
    isIdle: (href) => agents.get(href)?.isIdle === true,
    notes: () => (unread.size === 0 ? [] : [`Agents could not be read: ${[...unread].join('; ')}.`]),
  }
}

function readAgent(workload: Workload): Agent {
  const { status, online, heartbeatAt, pairedAt, mode } = readWork(workload)
  const isStopped = status !== null && status !== 'active'
  return {
    isAway: isStopped ? true : online === null ? null : !online,
    heardAt: timeOf(heartbeatAt),
    pairedAt: timeOf(pairedAt),
    isIdle: mode === 'idle',
  }
}

const timeOf = (time: string | null): number => (time === null ? NaN : Date.parse(time))
