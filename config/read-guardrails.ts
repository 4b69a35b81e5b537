import type { GuardrailsConfig, ProtectedLabel } from '../schemas/guardrails.js'
import { readFreezes } from './read-freezes.js'
import { readInteger, readList, shown, type Reading } from './read-values.js'

/** Reads the limits that hold for every caller in every mode; `guardrails` is absent if none is set. */
export function readGuardrails(reading: Reading): { guardrails?: GuardrailsConfig } {
  const protectedLabels = readProtected(reading)
  const freezes = readFreezes(reading)
  const range = { min: 1, max: 1_000_000, otherwise: 50, isOff: true }
  const maxWorkloads = reading.env.MCP_MAX_WORKLOADS_AFFECTED
    ? readInteger(reading, 'MCP_MAX_WORKLOADS_AFFECTED', range)
    : undefined
  if (protectedLabels === undefined && freezes === undefined && maxWorkloads === undefined) return {}
  return {
    guardrails: {
      ...(protectedLabels && { protectedLabels }),
      ...(freezes && { freezes }),
      ...(maxWorkloads !== undefined && { maxWorkloads }),
    },
  }
}

/** Reads MCP_PROTECTED, labels separated by commas. Nothing is guessed: an operator relies on the protection. */
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
