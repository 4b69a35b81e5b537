import type { World } from '../world.js'

/** Renders labels as `{href, key, value}`. Values are looked up each time, so that a changed value appears at once. */
export function renderLabels(world: World, references: unknown): { href: string; key: unknown; value: unknown }[] {
  return ((references ?? []) as { href: string }[]).map(({ href }) => {
    const label = world.labels.get(href)
    return { href, key: label?.key, value: label?.value }
  })
}
