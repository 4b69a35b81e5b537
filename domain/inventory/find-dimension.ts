import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { LabelDimension } from '../../schemas/pce/label.js'
import { nearNames } from '../text/compare-texts.js'
import { quote } from '../text/escape-text.js'
import { fetchEvery } from './fetch-every.js'

/**
 * Reads all label dimensions of the organisation, that is, the keys that labels can have. There are at most about
 * twenty (P14).
 */
export async function readDimensions(pce: PceClient, signal: AbortSignal): Promise<LabelDimension[]> {
  const { items } = await fetchEvery({ api: pce.labelDimensions, params: {}, signal })
  return items.filter(({ deleted }) => deleted !== true)
}

/**
 * Finds the label dimension with exactly this key.
 * @throws {ToolError} not_found with all existing keys.
 */
export async function findDimension(pce: PceClient, key: string, signal: AbortSignal): Promise<LabelDimension> {
  const all = await readDimensions(pce, signal)
  const found = all.find((one) => one.key === key)
  if (found !== undefined) return found
  const keys = all.map((one) => one.key)
  const near = nearNames(key, keys)
  const text = `No label dimension has the key ${quote(key)}. Keys: ${keys.map(quote).join(', ')}.`
  throw new ToolError('not_found', text, { argument: 'key', key, near_names: near })
}

/** The value of `external_data_set` in the dimensions that every organisation has from the start. */
const BUILT_IN = 'defaults.illumio.com'

/** Returns true for one of the four dimensions that every organisation has from the start: role, app, env and loc. */
export const isBuiltInDimension = ({ external_data_set: set, key }: LabelDimension): boolean =>
  set === BUILT_IN || ['role', 'app', 'env', 'loc'].includes(key)
