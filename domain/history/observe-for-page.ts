import { PceError } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { ToolContext } from '../call.js'
import { isUnread } from '../inventory/fetch-every.js'
import { loadPolicy } from './load-policy.js'
import { observeDraft, type BothPolicies, type DraftEvidence } from './observe-draft.js'

/**
 * Maximum number of changes whose traffic is looked up for one approval page. It equals the page size of review-draft.
 */
const MOST_CHANGES = 50
/**
 * Time limit in seconds for the whole lookup. It is short because the client waits for the approval question meanwhile.
 */
const MOST_SECONDS = 15

/** What observed traffic says about the changes on an approval page. */
export interface PageEvidence {
  /** The end of the observed time window, as RFC 3339 in UTC. */
  readAt: string
  /** Number of changes that were looked up; the others are left out. */
  lookedUp: number
  changes: number
  /** The evidence, or the reason why it is not known. */
  found: DraftEvidence | string
}

type Context = Pick<
  ToolContext<true>,
  'pce' | 'progress' | 'signal' | 'beforeWriting' | 'limits' | 'now' | 'log' | 'isForPage'
>

/**
 * Determines for the first few changes which traffic depends on them or requested them, as review-draft does. Resolves
 * with null unless the call is for an approval page. It never makes a preview fail: if policy or traffic cannot be read
 * in time, the evidence is the reason for this. Rejects only if the call is cancelled.
 * @param load reads the policies to compare; by default the active policy and the draft.
 */
export async function observeForPage(
  outer: Context,
  changes: readonly { href: string; type: string }[],
  load: (ctx: Pick<Context, 'pce' | 'signal'>) => Promise<BothPolicies> = loadBoth,
): Promise<PageEvidence | null> {
  if (outer.isForPage !== true || changes.length === 0) return null
  const chosen = changes.slice(0, MOST_CHANGES)
  const common = { readAt: new Date(outer.now()).toISOString(), lookedUp: chosen.length, changes: changes.length }
  const seconds = Math.min(outer.limits.trafficQueryTimeoutSeconds, MOST_SECONDS)
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new ToolError('cancelled', 'It took too long.')), seconds * 1000)
  const signal = AbortSignal.any([outer.beforeWriting, late.signal])
  const ctx = { ...outer, signal, beforeWriting: signal }
  try {
    return { ...common, found: await observeDraft(ctx, chosen, await load(ctx)) }
  } catch (error) {
    if (outer.beforeWriting.aborted) throw error
    if (late.signal.aborted) return { ...common, found: `it could not be read within ${seconds} s` }
    const isExpected = isUnread(error) || error instanceof PceError || error instanceof ToolError
    if (!isExpected) outer.log.warn({ err: error }, 'observed traffic could not be looked up for an approval')
    return { ...common, found: isExpected ? error.message : 'an unexpected error of this server, which is in its log' }
  } finally {
    clearTimeout(timer)
  }
}

async function loadBoth({ pce, signal }: Pick<Context, 'pce' | 'signal'>): Promise<BothPolicies> {
  const active = await loadPolicy(pce, 'active', signal)
  return { active, draft: await loadPolicy(pce, 'draft', signal) }
}
