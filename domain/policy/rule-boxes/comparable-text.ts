import { toDraftHref } from '../../inventory/parse-href.js'
import type { PolicyContents } from '../load-contents.js'
import { entriesOf } from './read-services.js'

/**
 * Returns a string by which parts of rules can be compared: two parts have the same string if and only if they mean the
 * same. The string includes the content of each object to which the part refers, because it may differ between
 * versions.
 */
export function textOf(value: unknown, contents: PolicyContents): string {
  return JSON.stringify(value, (_field, inner: unknown) => {
    if (typeof inner !== 'object' || inner === null || !('href' in inner) || typeof inner.href !== 'string')
      return inner
    const href = toDraftHref(inner.href)
    const list = contents.listOf(href)
    const service = contents.serviceOf(href)
    return [
      href,
      contents.membersOf(href)?.map((label) => label.href),
      list && [list.ip_ranges, list.fqdns],
      service && entriesOf(service),
    ]
  })
}
