import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { GuardrailsConfig, ProtectedLabel, TouchedGuardrail } from '../../schemas/guardrails.js'
import { placeWrite, refusePlaced } from '../scopes/judge-writes.js'
import { createReader } from '../scopes/read-around.js'
import type { Write } from '../scopes/read-write.js'
import { countOf } from '../text/describe-numbers.js'
import { countAffected } from './count-affected.js'
import { findFreeze, sayLocal } from './find-freeze.js'
import { surveyShield } from './survey-shield.js'
import { takesEffect } from './takes-effect.js'

/** Everything that is needed to judge guardrails. */
export interface GuardrailPorts {
  /** Returns the current time in milliseconds since the epoch. */
  readonly now: () => number
  /** Informs the operator of protected labels that do not exist on the PCE. */
  readonly noteMissing: (labels: readonly ProtectedLabel[]) => void
  /** The guardrails that two persons may override. */
  readonly byTwo: ReadonlySet<TouchedGuardrail['guardrail']>
}

/** The effects of requests on the guardrails. */
export interface Judgement {
  /**
   * The error of the first guardrail that forbids the requests and that no approval can override; null if there is
   * none. Its `details` say which object is protected, when the freeze ends, or how many workloads are affected.
   */
  readonly refusal: ToolError | null
  /**
   * The guardrails on freezes and on the number of workloads, if they concern the requests. Each has an error if it
   * forbids them.
   */
  readonly touched: readonly { readonly fact: TouchedGuardrail; readonly refusal: ToolError | null }[]
}

/**
 * Judges requests by the guardrails that the operator has set.
 * @throws the errors of the PCE client, and IncompleteListError if not all labels or workloads could be read.
 */
export async function judgeGuardrails(
  pce: PceClient,
  { protectedLabels = [], freezes = [], maxWorkloads }: GuardrailsConfig,
  requests: readonly Write[],
  ports: GuardrailPorts,
  signal: AbortSignal,
): Promise<Judgement> {
  if (requests.length === 0) return { refusal: null, touched: [] }
  const refusal =
    protectedLabels.length > 0 ? await refuseProtected(pce, protectedLabels, requests, ports, signal) : null
  if (refusal !== null) return { refusal, touched: [] }
  const touched = [...judgeFreezes(freezes, requests, pce.orgId, ports)]
  const frozen = touched.find((one) => !one.fact.needs_two_persons)
  if (frozen !== undefined) return { refusal: frozen.refusal, touched }
  if (maxWorkloads !== undefined) {
    const counted = await judgeNumber(pce, maxWorkloads, requests, ports, signal)
    if (counted !== null) touched.push(counted)
  }
  const forbidding = touched.find((one) => one.refusal !== null && !one.fact.needs_two_persons)
  return { refusal: forbidding?.refusal ?? null, touched }
}

type Touched = Judgement['touched'][number]

async function refuseProtected(
  pce: PceClient,
  wanted: readonly ProtectedLabel[],
  requests: readonly Write[],
  { noteMissing }: GuardrailPorts,
  signal: AbortSignal,
): Promise<ToolError | null> {
  const { territory, missing } = await surveyShield(pce, wanted, signal)
  if (missing.length > 0) noteMissing(missing)
  const reader = createReader(pce, territory, signal)
  for (const [at, request] of requests.entries()) {
    const placed = await placeWrite(reader, request, requests.slice(0, at))
    const found = placed.find(({ place }) => place.is !== 'inside')
    if (found !== undefined)
      return refusePlaced('protected', found, { protected_labels: wanted.map(({ key, value }) => `${key}=${value}`) })
  }
  return null
}

function judgeFreezes(
  freezes: NonNullable<GuardrailsConfig['freezes']>,
  requests: readonly Write[],
  orgId: string,
  { now, byTwo }: GuardrailPorts,
): Touched[] {
  if (!requests.some((request) => takesEffect(request, orgId))) return []
  const freeze = findFreeze(freezes, now())
  if (freeze === null) return []
  const { window, until } = freeze
  const ends =
    until === null ? 'No end of the freeze is in sight.' : `The freeze ends on ${sayLocal(window.zone, until)}.`
  const text = `Changes that take effect at once are frozen (${window.text}). ${ends}`
  const facts = { window: window.text, frozen_until: until === null ? null : new Date(until).toISOString() }
  const refused = until === null ? text : `${text} Drafts can be changed meanwhile.`
  const needsTwo = byTwo.has('frozen')
  const message = needsTwo ? `${text} Two people may override it for this call.` : text
  return [
    {
      fact: { guardrail: 'frozen', message, needs_two_persons: needsTwo, ...facts },
      refusal: new ToolError('frozen', refused, facts),
    },
  ]
}

/** Judges the number of workloads that requests affect; returns null if the requests have no immediate effect. */
async function judgeNumber(
  pce: PceClient,
  most: number,
  requests: readonly Write[],
  { byTwo }: GuardrailPorts,
  signal: AbortSignal,
): Promise<Touched | null> {
  const affected = await countAffected(pce, requests, signal)
  if (affected === 0) return null
  const isTooMany = affected === null || affected > most
  const limit = `at most ${most} may be affected at a time`
  const text =
    affected === null
      ? `How many workloads this affects is not known, and at most ${countOf(most, 'workload')} may be affected at a time.`
      : `This affects ${countOf(affected, 'workload')}${isTooMany ? `, and ${limit}` : `; ${limit}`}.`
  const facts = { workloads_affected: affected, max_workloads_affected: most }
  const needsTwo = isTooMany && byTwo.has('too_many_workloads')
  const message = needsTwo ? `${text} Two people have to approve it.` : text
  return {
    fact: { guardrail: 'too_many_workloads', message, needs_two_persons: needsTwo, ...facts },
    refusal: isTooMany ? new ToolError('too_many_workloads', text, facts) : null,
  }
}
