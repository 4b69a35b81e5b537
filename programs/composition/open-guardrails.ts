import type { CallerPce, FindPce } from '../../plugins/context/open-context.js'
import { createRefusingGuard } from '../../plugins/context/guard-writes.js'
import type { ServerLog } from '../../plugins/dispatcher/call.js'
import type { Gate } from '../../plugins/dispatcher/admit-call.js'
import { guardrailGate, type JudgeByGuardrails } from '../../plugins/dispatcher/guardrail-gate.js'
import type { PceClient } from '../../pce-client/index.js'
import type { PlannedRequest } from '../../schemas/dry-run.js'
import type { GuardrailsConfig, TouchedGuardrail } from '../../schemas/guardrails.js'

/**
 * The operator's limits for all callers: a gate that checks each call, and a guard that checks each request to the PCE.
 */
export interface Guardrails {
  readonly gates: readonly Gate[]
  /**
   * Returns a client that uses `pce` but sends only the requests that the guardrails allow. The same `pce` always gives
   * the same client.
   */
  readonly guard: <P extends CallerPce['pce']>(pce: P) => P
  /** Judges requests that a program itself lists; null if there are no guardrails. */
  readonly judge: JudgeByGuardrails | null
}

const NONE: Guardrails = {
  gates: [],
  guard: (pce) => pce,
  judge: null,
}

interface GuardrailOptions {
  log: ServerLog
  now: () => number
  /** Returns the guardrails that two persons have overridden for the current call; absent if nobody approves calls. */
  overrides?: () => readonly TouchedGuardrail[]
}

/**
 * Creates the guardrails that the configuration describes. The code that checks requests is loaded with the first call
 * that changes something.
 */
export function openGuardrails(
  config: GuardrailsConfig | undefined,
  { log, now, overrides }: GuardrailOptions,
): Guardrails {
  if (config === undefined) return NONE
  const told = new Set<string>()
  const byTwo = new Set<TouchedGuardrail['guardrail']>()
  if (overrides !== undefined) byTwo.add('too_many_workloads')
  if (overrides !== undefined && config.freezeOverride === true) byTwo.add('frozen')
  const judge = async (pce: PceClient, requests: readonly PlannedRequest[], signal: AbortSignal) => {
    const { judgeGuardrails } = await import('../../domain/guardrails/judge-guardrails.js')
    const ports = {
      now,
      byTwo,
      noteMissing(labels: readonly { key: string; value: string }[]) {
        for (const { key, value } of labels) {
          const label = `${key}=${value}`
          if (told.has(label)) continue
          told.add(label)
          log.warn({ label }, 'MCP_PROTECTED names a label that the PCE does not have: it protects nothing there')
        }
      },
    }
    return judgeGuardrails(pce, config, requests, ports, signal)
  }
  const guard = createRefusingGuard(async (pce, requests, signal) => {
    const { refusal, touched } = await judge(pce, requests, signal)
    if (refusal !== null || touched.length === 0) return refusal
    const { isOverridden } = await import('../../schemas/is-overridden.js')
    const overridden = overrides?.() ?? []
    return touched.find((one) => one.refusal !== null && !isOverridden(overridden, one.fact))?.refusal ?? null
  })
  return {
    gates: [guardrailGate(judge)],
    guard: <P extends CallerPce['pce']>(pce: P) => (pce === null ? pce : (guard(pce) as P)),
    judge,
  }
}

/**
 * Wraps a function that finds the PCE of a caller, so that the guardrails check every request of the clients that it
 * returns.
 */
export function guardFound(find: FindPce, guard: Guardrails['guard']): FindPce {
  const guarded = (found: CallerPce): CallerPce => {
    const pce = guard(found.pce)
    return pce === found.pce ? found : { ...found, pce }
  }
  return (...asked) => {
    const found = find(...asked)
    return found instanceof Promise ? found.then(guarded) : guarded(found)
  }
}
