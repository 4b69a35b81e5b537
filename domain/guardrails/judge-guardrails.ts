import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { GuardrailsConfig, ProtectedLabel } from '../../schemas/guardrails.js'
import { placeWrite, refusePlaced } from '../scopes/judge-writes.js'
import { createReader } from '../scopes/read-around.js'
import type { Write } from '../scopes/read-write.js'
import { countOf } from '../text/describe-numbers.js'
import { countAffected } from './count-affected.js'
import { findFreeze, sayLocal } from './find-freeze.js'
import { surveyShield } from './survey-shield.js'
import { takesEffect } from './takes-effect.js'

/** What the guardrails are judged with. */
export interface GuardrailPorts {
  /** Returns milliseconds since the epoch. */
  readonly now: () => number
  /** Tells the operator of protected labels that the PCE does not have. */
  readonly noteMissing: (labels: readonly ProtectedLabel[]) => void
}

/**
 * Returns the refusal of requests that one of the guardrails forbids; null if all are allowed. `details` say which
 * object is protected, when the freeze ends, or how many workloads are affected.
 * @throws the errors of the PCE client, and IncompleteListError if not all labels or workloads could be read.
 */
export async function refuseByGuardrails(
  pce: PceClient,
  { protectedLabels = [], freezes = [], maxWorkloads }: GuardrailsConfig,
  requests: readonly Write[],
  ports: GuardrailPorts,
  signal: AbortSignal,
): Promise<ToolError | null> {
  if (requests.length === 0) return null
  return (
    (protectedLabels.length > 0 ? await refuseProtected(pce, protectedLabels, requests, ports, signal) : null) ??
    refuseFrozen(freezes, requests, pce.orgId, ports.now()) ??
    (maxWorkloads === undefined ? null : await refuseTooMany(pce, maxWorkloads, requests, signal))
  )
}

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

function refuseFrozen(
  freezes: NonNullable<GuardrailsConfig['freezes']>,
  requests: readonly Write[],
  orgId: string,
  now: number,
): ToolError | null {
  if (!requests.some((request) => takesEffect(request, orgId))) return null
  const freeze = findFreeze(freezes, now)
  if (freeze === null) return null
  const { window, until } = freeze
  const ends =
    until === null
      ? 'No end of the freeze is in sight.'
      : `The freeze ends on ${sayLocal(window.zone, until)}. Drafts can be changed meanwhile.`
  return new ToolError('frozen', `Changes that take effect at once are frozen (${window.text}). ${ends}`, {
    window: window.text,
    frozen_until: until === null ? null : new Date(until).toISOString(),
  })
}

async function refuseTooMany(
  pce: PceClient,
  most: number,
  requests: readonly Write[],
  signal: AbortSignal,
): Promise<ToolError | null> {
  const affected = await countAffected(pce, requests, signal)
  if (affected !== null && affected <= most) return null
  const many =
    affected === null
      ? `How many workloads this affects is not known, and at most ${countOf(most, 'workload')} may be affected at a time.`
      : `This affects ${countOf(affected, 'workload')}, and at most ${most} may be affected at a time.`
  return new ToolError('too_many_workloads', `${many} Nothing of it was written.`, {
    workloads_affected: affected,
    max_workloads_affected: most,
  })
}
