import type { World } from '../world.js'

/** `{href, key, value}` of each label, as it is called now: a renamed label shows at once. */
export function renderLabels(world: World, references: unknown): { href: string; key: unknown; value: unknown }[] {
  return ((references ?? []) as { href: string }[]).map(({ href }) => {
    const label = world.labels.get(href)
    return { href, key: label?.key, value: label?.value }
  })
}
