import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import type { ToolContext } from '../call.js'
import { fetchEvery, IncompleteListError } from './fetch-every.js'
import { indexLabels, loadLabels, splitLabel, type LabelIndex } from './labels.js'
import { parseHref } from './parse-href.js'
import { requireInside } from './limited-reading.js'
import { nearNames } from '../text/compare-texts.js'
import { quote, trimBlanks } from '../text/escape-text.js'

/** Maximum number of keys listed in an error. */
const MAX_KEYS = 50

/** The two ways to name a label: by href, or by key and value. */
interface LabelIdentity {
  href?: string
  key?: string
  value?: string
}

/**
 * Finds the label that a caller names. The comparison is exact and case-sensitive.
 * @throws {ToolError} missing_identifier, conflicting_identifiers, invalid_href if the href is not a label of this
 * organisation, or not_found with similar values.
 */
export function findLabel(index: LabelIndex, { href, key, value }: LabelIdentity, orgId: string): Label {
  if (href !== undefined && (key !== undefined || value !== undefined)) {
    throw new ToolError('conflicting_identifiers', 'Give href, or key and value, not both.', {
      arguments: ['href', 'key', 'value'],
    })
  }
  if (href !== undefined) return findByHref(index, href.trim(), orgId)
  if (key === undefined || value === undefined) {
    throw new ToolError('missing_identifier', 'Say which label: give href, or key and value.', {
      arguments: ['href', 'key', 'value'],
    })
  }
  const label = index.find(key, value)
  if (label !== undefined) return label
  const near = nearNames(value, index.values(key))
  const keys = index.values(key).length === 0 ? { keys: index.keys().slice(0, MAX_KEYS) } : {}
  throw new ToolError(
    'not_found',
    `No label is exactly ${quote(`${key}=${value}`)}.`,
    { key, value, near_names: near, ...keys },
    hintWithout(near, quote(key)),
  )
}

/** Returns the hint of a not_found error, unless the error already suggests similar values. */
const hintWithout = (near: readonly string[], key: string) =>
  near.length > 0 ? {} : { hint: `No ${key} label has a similar value; get-labels lists them.` }

function findByHref(index: LabelIndex, href: string, orgId: string): Label {
  const parsed = parseHref(href)
  if (parsed?.kind !== 'labels' || parsed.org !== orgId || parsed.id === undefined) {
    throw new ToolError('invalid_href', `${quote(href)} is not the href of a label in organisation ${orgId}.`, { href })
  }
  const label = index.get(href)
  if (label === undefined) throw new ToolError('not_found', `No label has the href ${quote(href)}.`, { href })
  return label
}

/** The arguments that name an application, and the label key that belongs to each argument (T3, T11). */
const KEYS = { app_name: 'app', env_name: 'env' } as const
type ApplicationArguments = Partial<Record<keyof typeof KEYS, string | undefined>>

/**
 * Finds the labels that describe an application, in the order of `KEYS`. Absent arguments are skipped. Each argument is
 * a bare value, `app=VALUE` (or `env=VALUE`) or a label href.
 * @throws {ToolError} not_found with similar values if a label does not exist. Ignoring its name would widen the answer
 * to everything. out_of_scope if the application is outside of what a caller with limited reading sees.
 * @throws {IncompleteListError} if the PCE sends only part of the list of labels and these labels cannot be found one
 * by one.
 */
export async function resolveApplication(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  named: ApplicationArguments,
): Promise<Label[]> {
  const asked = Object.entries(KEYS).flatMap(([argument, key]) => {
    const text = named[argument as keyof typeof KEYS]
    return text === undefined ? [] : [{ argument, key, text: trimBlanks(text) }]
  })
  if (asked.length === 0) {
    await requireInside(ctx.pce, 'The whole organisation', [])
    return []
  }
  const attempt = (index: LabelIndex) => asked.map(({ key, text }) => find(index, key, text))
  let index: LabelIndex
  let found: ReturnType<typeof attempt>
  try {
    index = await loadLabels(ctx.pce, ctx)
    found = attempt(index)
    if (found.includes(undefined)) {
      index = await loadLabels(ctx.pce, ctx, 'fresh')
      found = attempt(index)
    }
  } catch (error) {
    if (!(error instanceof IncompleteListError)) throw error
    index = await readByName(ctx, asked)
    found = attempt(index)
    if (found.includes(undefined)) throw error
  }
  const at = found.indexOf(undefined)
  if (at === -1) {
    const labels = found.filter((label) => label !== undefined)
    await requireInside(
      ctx.pce,
      labels.map((label) => quote(`${label.key}=${label.value}`)).join(' and '),
      labels.map(({ href }) => href),
    )
    return labels
  }
  const { argument, key, text } = asked[at] as (typeof asked)[number]
  const near = text.startsWith('/') ? [] : nearNames(splitLabel(text)?.value ?? text, index.values(key))
  throw new ToolError(
    'not_found',
    `No ${key} label is exactly ${quote(text)}.`,
    { argument, key, value: text, near_names: near },
    hintWithout(near, key),
  )
}

/**
 * Reads each label that the arguments name with a separate request, instead of reading the list of all labels. Labels
 * given by href are not looked up.
 */
async function readByName(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  asked: readonly { key: string; text: string }[],
): Promise<LabelIndex> {
  const named = asked.flatMap(({ key, text }) =>
    [text, splitLabel(text)?.value].flatMap((value) => (value === undefined ? [] : { key, value })),
  )
  const pages = await Promise.all(named.map((params) => fetchEvery({ api: pce.labels, params, signal })))
  return indexLabels(pages.flatMap(({ items }) => items))
}

function find(index: LabelIndex, key: string, text: string): Label | undefined {
  const direct = index.find(key, text)
  if (direct !== undefined) return direct
  const label = text.startsWith('/') ? index.get(text) : undefined
  const pair = splitLabel(text)
  const named = label ?? (pair?.key === key ? index.find(key, pair.value) : undefined)
  return named?.key === key ? named : undefined
}
