import type { CallerPce, FindPce } from '../../plugins/context/open-context.js'
import { createRefusingGuard } from '../../plugins/context/guard-writes.js'
import type { ServerLog } from '../../plugins/dispatcher/call.js'
import type { Gate } from '../../plugins/dispatcher/admit-call.js'
import { guardrailGate, type RefuseByGuardrails } from '../../plugins/dispatcher/guardrail-gate.js'
import type { GuardrailsConfig } from '../../schemas/guardrails.js'

/** The guardrails of a server: the gate that checks calls, and the clients that check requests. */
export interface Guardrails {
  readonly gates: readonly Gate[]
  /** Returns the client that sends only requests which the guardrails allow; the same one for the same client. */
  readonly guard: <P extends CallerPce['pce']>(pce: P) => P
}

const NONE: Guardrails = { gates: [], guard: (pce) => pce }

/** Creates the guardrails of the configuration. What judges is loaded with the first call that changes something. */
export function openGuardrails(
  config: GuardrailsConfig | undefined,
  { log, now }: { log: ServerLog; now: () => number },
): Guardrails {
  if (config === undefined) return NONE
  const told = new Set<string>()
  const refuse: RefuseByGuardrails = async (pce, requests, signal) => {
    const { refuseByGuardrails } = await import('../../domain/guardrails/judge-guardrails.js')
    const ports = {
      now,
      noteMissing(labels: readonly { key: string; value: string }[]) {
        for (const { key, value } of labels) {
          const label = `${key}=${value}`
          if (told.has(label)) continue
          told.add(label)
          log.warn({ label }, 'MCP_PROTECTED names a label that the PCE does not have: it protects nothing there')
        }
      },
    }
    return refuseByGuardrails(pce, config, requests, ports, signal)
  }
  const guard = createRefusingGuard(refuse)
  return {
    gates: [guardrailGate(refuse)],
    guard: <P extends CallerPce['pce']>(pce: P) => (pce === null ? pce : (guard(pce) as P)),
  }
}

/** Returns a function that finds the PCEs of callers with clients that the guardrails check. */
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
