import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import type { ToolContext } from '../call.js'
import { loadLabels, type LabelIndex } from './load-labels.js'
import { nearNames } from '../text/near-names.js'
import { splitLabel } from './resolve-labels.js'
import { trimBlanks } from '../text/escape-text.js'

/** Arguments that name an application, by the key of the label each stands for (T3, T11). */
const KEYS = { app_name: 'app', env_name: 'env' } as const
export type ApplicationArguments = Partial<Record<keyof typeof KEYS, string | undefined>>

/**
 * The labels that an application's arguments name, in the order of KEYS; absent ones are left out. Each is the bare value,
 * `app=VALUE`, or a label href. Throws not_found with near values: an unknown name must not widen the answer to everything.
 */
export async function resolveApplication(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  named: ApplicationArguments,
): Promise<Label[]> {
  const asked = Object.entries(KEYS).flatMap(([argument, key]) => {
    const text = named[argument as keyof typeof KEYS]
    return text === undefined ? [] : [{ argument, key, text: trimBlanks(text) }]
  })
  if (asked.length === 0) return []
  const attempt = (index: LabelIndex) => asked.map(({ key, text }) => find(index, key, text))
  let index = await loadLabels(ctx.pce, ctx)
  let found = attempt(index)
  if (found.includes(undefined)) {
    index = await loadLabels(ctx.pce, ctx, 'fresh')
    found = attempt(index)
  }
  const at = found.indexOf(undefined)
  if (at === -1) return found.filter((label) => label !== undefined)
  const { argument, key, text } = asked[at] as (typeof asked)[number]
  const near = text.startsWith('/') ? [] : nearNames(splitLabel(text)?.value ?? text, index.values(key))
  throw new ToolError('not_found', `No ${key} label is exactly "${text}".`, {
    argument,
    key,
    value: text,
    near_names: near,
  })
}

function find(index: LabelIndex, key: string, text: string): Label | undefined {
  const direct = index.find(key, text)
  if (direct !== undefined) return direct
  const label = text.startsWith('/') ? index.get(text) : undefined
  const pair = splitLabel(text)
  const named = label ?? (pair?.key === key ? index.find(key, pair.value) : undefined)
  return named?.key === key ? named : undefined
}
