import { Type } from '@sinclair/typebox'
import { invalidInput, notAcceptable } from '../refusal.js'
import { EXTERNAL_DATA_FILTERS, exact } from '../validate/query-filters.js'
import { CLOSED, EXTERNAL_DATA, Name, Shape } from '../validate/shape.js'
import { UNCERTAIN } from '../uncertain.js'
import type { World } from '../world.js'
import type { PlainKind } from './plain-kind.js'

const DisplayInfo = Type.Object(
  {
    icon: Type.Optional(Type.String()),
    initial: Type.Optional(Type.String({ maxLength: 2 })),
    sort_ordinal: Type.Optional(Type.Integer()),
    background_color: Type.Optional(Type.String()),
    foreground_color: Type.Optional(Type.String()),
    display_name_plural: Type.Optional(Type.String()),
  },
  CLOSED,
)
const CREATE = new Shape(
  'label_dimensions_post',
  Type.Object({ key: Name, display_name: Name, display_info: Type.Optional(DisplayInfo), ...EXTERNAL_DATA }, CLOSED),
)
const UPDATE = new Shape(
  'label_dimensions_put',
  Type.Object(
    { display_name: Type.Optional(Name), display_info: Type.Optional(DisplayInfo), ...EXTERNAL_DATA },
    CLOSED,
  ),
)

/** The value of `external_data_set` in the four dimensions with which every organisation starts (P14). */
const BUILT_IN = 'defaults.illumio.com'
export const BUILT_IN_DIMENSIONS = [
  { key: 'role', display_name: 'Role' },
  { key: 'app', display_name: 'Application' },
  { key: 'env', display_name: 'Environment' },
  { key: 'loc', display_name: 'Location' },
].map((dimension, index) => ({
  ...dimension,
  display_info: { initial: dimension.display_name[0]!, sort_ordinal: (index + 1) * 1_000_000 },
  external_data_set: BUILT_IN,
  external_data_reference: `${dimension.key}_label_dimension`,
}))

export const labelDimension: PlainKind = {
  segment: 'label_dimensions',
  noun: 'label_dimension',
  ids: 'uuid',
  store: (world) => world.labelDimensions,
  filters: { key: exact('key'), ...EXTERNAL_DATA_FILTERS },

  build(world, body) {
    const { key, display_name, display_info = {}, ...external } = CREATE.read(body)
    const taken = world.labelDimensions.live().some((other) => other.key === key || other.display_name === display_name)
    if (taken) throw notAcceptable(UNCERTAIN.duplicateName.token, UNCERTAIN.duplicateName.message)
    return {
      key,
      display_name,
      display_info,
      deleted: false,
      deleted_at: null,
      external_data_set: external.external_data_set ?? null,
      external_data_reference: external.external_data_reference ?? null,
    }
  },

  change(_world, _current, body) {
    return UPDATE.read(body)
  },

  remove(world, current) {
    if (current.external_data_set === BUILT_IN) throw invalidInput('A built-in label dimension cannot be deleted')
    if (usesOf(world, String(current.key)).labels) throw invalidInput('The label dimension still has labels')
    return null
  },

  render(world, object) {
    return { ...object, usage: usesOf(world, String(object.key)), caps: ['write'] }
  },
}

function usesOf(world: World, key: string): { labels: boolean; label_groups: boolean } {
  return {
    labels: world.labels.live().some((label) => label.key === key),
    label_groups: world.policy.entries('label_groups').some(({ draft }) => draft.key === key),
  }
}
