import type { GuardrailsConfig, ProtectedLabel } from '../schemas/guardrails.js'
import { readFreezes } from './read-freezes.js'
import { readChoice, readInteger, readList, shown, type Reading } from './read-values.js'

/** Reads the operator's limits that apply to every caller in every mode. `guardrails` is absent if no limit is set. */
export function readGuardrails(reading: Reading): { guardrails?: GuardrailsConfig } {
  const protectedLabels = readProtected(reading)
  const freezes = readFreezes(reading)
  const range = { min: 1, max: 1_000_000, otherwise: 50, isOff: true }
  const maxWorkloads = reading.env.MCP_MAX_WORKLOADS_AFFECTED
    ? readInteger(reading, 'MCP_MAX_WORKLOADS_AFFECTED', range)
    : undefined
  const override = readChoice(reading, OVERRIDE, ['off', 'two-persons'], 'off')
  if (override !== 'off' && freezes === undefined)
    reading.faults.push({
      problem: `${OVERRIDE} is set, but there is no freeze to override`,
      remedy: `Set MCP_FREEZE_WINDOWS, or unset ${OVERRIDE}.`,
    })
  if (protectedLabels === undefined && freezes === undefined && maxWorkloads === undefined) return {}
  return {
    guardrails: {
      ...(protectedLabels && { protectedLabels }),
      ...(freezes && { freezes }),
      ...(maxWorkloads !== undefined && { maxWorkloads }),
      ...(override !== 'off' && { freezeOverride: true as const }),
    },
  }
}

const OVERRIDE = 'MCP_FREEZE_OVERRIDE'

/**
 * Reports MCP_FREEZE_OVERRIDE as a fault if no person approves calls, because then there are no two persons who could
 * override a freeze.
 */
export function refuseOverride({ env, faults }: Reading): void {
  if (!env[OVERRIDE] || env[OVERRIDE] === 'off') return
  faults.push({
    problem: `${OVERRIDE} needs approval by a person, and calls are confirmed with tokens here`,
    remedy: `Set MCP_APPROVAL to page or two-person, or unset ${OVERRIDE}.`,
  })
}

/**
 * Reads MCP_PROTECTED, a list of labels separated by commas. An entry that is unclear is a fault, because the operator
 * relies on the protection.
 */
function readProtected(reading: Reading): ProtectedLabel[] | undefined {
  const name = 'MCP_PROTECTED'
  if (!reading.env[name]) return undefined
  const entries = readList(reading, name)
  if (entries.length === 0)
    reading.faults.push({
      problem: `${name} is set but names no label`,
      remedy: `Write labels as key=value, such as ${name}=role=domain-controller, or unset it.`,
    })
  return entries.flatMap((entry) => {
    const at = entry.indexOf('=')
    const [key, value] = [entry.slice(0, Math.max(at, 0)).trim(), entry.slice(at + 1).trim()]
    if (at > 0 && key !== '' && value !== '') return [{ key, value }]
    reading.faults.push({
      problem: `${name} must be labels as key=value, separated by commas`,
      remedy: `One of them is ${shown(entry)}: write, for example, ${name}=role=domain-controller`,
    })
    return []
  })
}
