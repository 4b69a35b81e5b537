import { corporateNetwork } from '../estate/shape-workload.js'
import type { Label } from '../../schemas/pce/label.js'
import type { Workload } from '../../schemas/pce/workload.js'
import {
  collectTraffic,
  type TrafficQueryBody,
  type TrafficRows,
  type TrafficState,
} from '../policy/run-traffic-query.js'
import { podsAsEnds } from '../inventory/pod-traffic.js'
import { buildPolicyView } from '../policy-versions/build-policy-view.js'
import { advance, isPending, requireResult, type Progress } from '../status/progress.js'
import { PCE_FQDN, orgPath, type World } from '../world.js'
import type { AcceptedQuery } from './validate-query.js'
import { ALL_ROWS, type RuleWindow, type TrafficQuery } from './traffic-query.js'

/**
 * An asynchronous traffic query, from its POST to its DELETE. The result shows the estate in its state at the time of
 * the POST. Stored objects are never modified in place, so keeping that state costs only references. Rows are computed
 * on demand, because a result of 200,000 rows is too large to keep for every query.
 */
export class TrafficQueryRun implements TrafficQuery {
  readonly href: string
  readonly #world: World
  readonly #query: AcceptedQuery
  readonly #given: unknown
  readonly #createdAt: string
  #updatedAt: string
  #progress: Progress
  #cancelling: 'requested' | 'cancelled' | null = null
  #rules: Progress | null = null
  #ruleWindow = ALL_ROWS
  #state: TrafficState
  #counts: { matches_count: number; flows_count: number } | null = null

  /** Creates the run of a query. `given` is the body as the client sent it, which the PCE returns in its answers. */
  constructor(world: World, query: AcceptedQuery, given: unknown, progress: Progress) {
    this.#world = world
    this.#given = given
    this.#query = query
    this.#progress = progress
    this.href = orgPath(world, `/traffic_flows/async_queries/${world.ids.uuid('async_queries')}`)
    this.#createdAt = this.#updatedAt = world.now()
    this.#state = readTrafficState(world)
  }

  get isCompleted(): boolean {
    return this.#cancelling === null && this.#progress.stage === 'done'
  }

  requireResult(): void {
    requireResult(this.#progress)
  }

  get isPending(): boolean {
    return (this.#cancelling === null && isPending(this.#progress)) || (this.#rules !== null && isPending(this.#rules))
  }

  poll(): void {
    const { pollsUntilDone } = this.#world.options
    if (this.#cancelling === 'requested') this.#cancelling = 'cancelled'
    else if (this.#cancelling === 'cancelled') return
    else if (isPending(this.#progress)) {
      const next = advance(this.#progress, pollsUntilDone)
      if (next.stage === this.#progress.stage) return void (this.#progress = next)
      this.#progress = next
      if (next.stage === 'done') this.#count()
    } else {
      if (this.#rules) this.#rules = advance(this.#rules, pollsUntilDone)
      return
    }
    this.#updatedAt = this.#world.now()
  }

  cancel(): void {
    if (this.#cancelling !== null || !isPending(this.#progress)) return
    this.#cancelling = 'requested'
    this.#updatedAt = this.#world.now()
  }

  updateRules(progress: Progress, window: RuleWindow): void {
    this.#rules = progress
    this.#ruleWindow = window
    this.#state = { ...this.#state, draft: buildPolicyView(this.#world, 'draft') }
    if (this.#world.lastResult?.run === this) this.#world.lastResult = null
  }

  rows(): TrafficRows['rows'] {
    return this.#result(this.#rules?.stage === 'done').rows
  }

  describe(): Record<string, unknown> {
    const counts = this.#counts
    return {
      href: this.href,
      status: this.#status(),
      ...(counts ? { result: `${this.href}/download` } : {}),
      created_by: { href: this.#world.user.href },
      created_at: this.#createdAt,
      updated_at: this.#updatedAt,
      ...(counts ? { ...counts, regions: [{ pce_fqdn: PCE_FQDN, responded: true, ...counts }] } : {}),
      ...(this.#rules ? { rules: RULE_STATUSES[this.#rules.stage] } : {}),
      query_parameters: this.#given,
    }
  }

  #status(): string {
    if (this.#cancelling === null) return STATUSES[this.#progress.stage]
    return this.#cancelling === 'requested' ? 'cancel_requested' : 'cancelled'
  }

  #count(): void {
    const { rowsCount, matchesCount } = this.#result(false)
    this.#counts = { matches_count: matchesCount, flows_count: rowsCount }
  }

  /**
   * Computes the result, or returns it from the cache. Of all queries, only the latest result is cached: a download
   * usually follows the poll that completed the query.
   */
  #result(withDraft: boolean): TrafficRows {
    const last = this.#world.lastResult
    if (last?.run === this && last.withDraft === withDraft) return last.result
    const { draft, ...state } = this.#state
    const drafted = withDraft && draft ? { ...state, draft, draftRows: this.#ruleWindow } : state
    const result = collectTraffic(this.#query as TrafficQueryBody, drafted)
    this.#world.lastResult = { run: this, withDraft, result }
    return result
  }
}

const STATUSES = { waiting: 'queued', working: 'working', done: 'completed', failed: 'failed' } as const
const RULE_STATUSES = { ...STATUSES, waiting: 'working' } as const

/** Returns the current state of the PCE. A query that starts now is answered from this state. */
export function readTrafficState(world: World): TrafficState {
  return {
    conversations: world.conversations,
    workloads: new Map(
      [...(world.workloads.all() as Workload[]), ...podsAsEnds(world)].map((object) => [object.href, object]),
    ),
    labels: new Map(world.labels.all().map((object) => [object.href, object as Label])),
    active: buildPolicyView(world, 'active'),
    now: world.clock(),
    rowLimit: world.options.trafficRows,
    addsUpFirst: world.options.addUpBeforeCutting,
    reality: world.options.reality,
    corporate: world.options.reality === 'core-25.2' ? corporateNetwork(world.orgId) : null,
  }
}
