import type { Label } from '../../../schemas/pce/label.js'
import type { Workload } from '../../../schemas/pce/workload.js'
import {
  runTrafficQuery,
  type TrafficQueryBody,
  type TrafficResult,
  type TrafficState,
} from '../policy/run-traffic-query.js'
import { buildPolicyView } from '../policy-versions/build-policy-view.js'
import { PCE_FQDN, orgPath, type World } from '../world.js'
import type { AcceptedQuery } from './validate-query.js'

type Status = 'queued' | 'working' | 'completed' | 'cancel_requested' | 'cancelled'

/**
 * One asynchronous traffic query from its POST to its DELETE. It answers from the state of the estate when it was asked for:
 * bodies are never changed in place, so keeping that state costs pointers. The rows are worked out when they are needed, for a
 * result of 200,000 of them is too much to keep with every query.
 */
export class TrafficQueryRun {
  readonly href: string
  readonly #world: World
  readonly #query: AcceptedQuery
  readonly #given: unknown
  readonly #createdAt: string
  #updatedAt: string
  #status: Status = 'queued'
  #polls = 0
  #rules: 'working' | 'completed' | null = null
  #rulePolls = 0
  #state: TrafficState
  #counts: { matches_count: number; flows_count: number } | null = null

  /** `given` is the body as it came: the PCE echoes it. */
  constructor(world: World, query: AcceptedQuery, given: unknown) {
    this.#world = world
    this.#given = given
    this.#query = query
    this.href = orgPath(world, `/traffic_flows/async_queries/${world.ids.uuid('async_queries')}`)
    this.#createdAt = this.#updatedAt = world.now()
    this.#state = {
      conversations: world.conversations,
      workloads: new Map(world.workloads.all().map((object) => [object.href, object as Workload])),
      labels: new Map(world.labels.all().map((object) => [object.href, object as Label])),
      active: buildPolicyView(world, 'active'),
      now: world.clock(),
    }
  }

  get isCompleted(): boolean {
    return this.#status === 'completed'
  }

  /** Waiting or at work: whoever polls is told when to come again. */
  get isPending(): boolean {
    return this.#status === 'queued' || this.#status === 'working' || this.#rules === 'working'
  }

  /** One GET: the query moves on. */
  poll(): void {
    const { pollsUntilDone } = this.#world.options
    if (this.#status === 'cancel_requested') this.#move('cancelled')
    else if (this.#status === 'queued' || this.#status === 'working') {
      this.#polls += 1
      if (this.#polls >= pollsUntilDone) this.#complete()
      else if (this.#polls > 1 || pollsUntilDone === 2) this.#move('working')
    } else if (this.#rules === 'working') {
      this.#rulePolls += 1
      if (this.#rulePolls >= pollsUntilDone) this.#rules = 'completed'
    }
  }

  /** A query that has ended stays as it ended. */
  cancel(): void {
    if (this.#status === 'queued' || this.#status === 'working') this.#move('cancel_requested')
  }

  /** The draft decisions will be those of the draft as it is now. */
  updateRules(): void {
    this.#rules = 'working'
    this.#rulePolls = 0
    this.#state = { ...this.#state, draft: buildPolicyView(this.#world, 'draft') }
    if (this.#world.lastResult?.run === this) this.#world.lastResult = null
  }

  rows(): TrafficResult['flows'] {
    return this.#result(this.#rules === 'completed').flows
  }

  describe(): Record<string, unknown> {
    const counts = this.#counts
    return {
      href: this.href,
      status: this.#status,
      ...(counts ? { result: `${this.href}/download` } : {}),
      created_by: { href: this.#world.user.href },
      created_at: this.#createdAt,
      updated_at: this.#updatedAt,
      ...(counts ? { ...counts, regions: [{ pce_fqdn: PCE_FQDN, responded: true, ...counts }] } : {}),
      ...(this.#rules ? { rules: this.#rules } : {}),
      query_parameters: this.#given,
    }
  }

  #complete(): void {
    const { flows, matchesCount } = this.#result(false)
    this.#counts = { matches_count: matchesCount, flows_count: flows.length }
    this.#move('completed')
  }

  #move(status: Status): void {
    this.#status = status
    this.#updatedAt = this.#world.now()
  }

  /** The last result is kept, whosever it was: a download follows the poll that completed the query. */
  #result(withDraft: boolean): TrafficResult {
    const last = this.#world.lastResult
    if (last?.run === this && last.withDraft === withDraft) return last.result
    const { draft, ...state } = this.#state
    const result = runTrafficQuery(this.#query as TrafficQueryBody, withDraft && draft ? { ...state, draft } : state)
    this.#world.lastResult = { run: this, withDraft, result }
    return result
  }
}
