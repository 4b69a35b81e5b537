import { tools } from '../index.js'
import { catalogueOf } from './catalogue-of.js'

/**
 * All tools of the server, sorted by name, in the form that tools/list and the checks before a call need. In a build,
 * the entries are data, and a tool's code is loaded when it is first called (scripts/build.mjs).
 */
export const catalogue = catalogueOf(tools)
