import { toDraftHref } from '../../inventory/parse-href.js'
import type { PolicyContents } from '../load-contents.js'
import { entriesOf } from './read-services.js'

/**
 * Returns a text for a part of a rule. Two parts have the same text exactly if they mean the same. An object that the
 * part refers to is written with its content, because the same href may have different content in another version.
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
