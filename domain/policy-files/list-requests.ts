import type { PlannedRequest } from '../../schemas/dry-run.js'
import { parseHref } from '../inventory/parse-href.js'
import type { FilesPlan } from './plan-writes.js'

type Fields = Record<string, unknown>
type Reference = { href: string }

/**
 * Returns the requests of a plan in the form in which a dry run lists them, so that they can be judged before the first
 * one is sent. Braces stand for ids that the PCE will assign. A label group that does not exist yet is replaced by its
 * labels, because the PCE cannot be asked what it contains.
 */
export function listRequests({ objects }: Pick<FilesPlan, 'objects'>): PlannedRequest[] {
  const groups = new Map<string, Fields>()
  for (const { difference } of objects) {
    const { kind, object } = difference
    if (kind === 'label_groups' && object !== null && isNew(object.wire.href)) groups.set(object.wire.href, object.wire)
  }
  return objects.flatMap(({ steps, difference: { before, object } }) =>
    steps.map(({ method, path, body }) => ({
      method,
      // For a rule in a new rule set, the path is only the part after the rule set's href.
      path: (path.startsWith('/orgs/') ? path : `${before?.href ?? object?.wire.href ?? ''}${path}`).replace(
        /\/(new:\d+)/,
        '/{$1}',
      ),
      body: expandGroups(body, groups),
    })),
  )
}

const isNew = (href: string): boolean => parseHref(href)?.id?.startsWith('new:') === true

/** Replaces new label groups in the scopes and rules of a request body by their labels. */
function expandGroups(body: unknown, groups: ReadonlyMap<string, Fields>): unknown {
  if (typeof body !== 'object' || body === null || groups.size === 0) return body
  const expand = (end: unknown) => endsOf(end, groups)
  const whole: Fields = { ...body }
  for (const side of ['providers', 'consumers'])
    if (Array.isArray(whole[side])) whole[side] = whole[side].flatMap(expand)
  for (const rules of ['rules', 'deny_rules'])
    if (Array.isArray(whole[rules])) whole[rules] = whole[rules].map((rule) => expandGroups(rule, groups))
  if (Array.isArray(whole['scopes']))
    whole['scopes'] = whole['scopes'].flatMap((scope: unknown[]) =>
      // A scope can name only one label of each key, so each label of a group needs a scope of its own.
      scope.reduce<unknown[][]>(
        (scopes, end) => scopes.flatMap((before) => expand(end).map((one) => [...before, one])),
        [[]],
      ),
    )
  return whole
}

/** Returns an entry of a rule or scope as a list: the entry itself or, for a new label group, the group's labels. */
function endsOf(end: unknown, groups: ReadonlyMap<string, Fields>, within: readonly string[] = []): unknown[] {
  const { label_group: group, ...rest } = end as { label_group?: Reference }
  const found = group === undefined ? undefined : groups.get(group.href)
  if (group === undefined || found === undefined || within.includes(group.href)) return [end]
  const labels = ((found['labels'] ?? []) as Reference[]).map(({ href }) => ({ ...rest, label: { href } }))
  const inner = ((found['sub_groups'] ?? []) as Reference[]).flatMap(({ href }) =>
    endsOf({ ...rest, label_group: { href } }, groups, [...within, group.href]),
  )
  return [...labels, ...inner]
}
