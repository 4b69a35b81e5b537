import type { AnyTool } from '../../define.js'
import { limitReads } from './limit-reads.js'
import { withPlan } from './plan-requests.js'
import { withPreview } from './preview-dry-run.js'

/**
 * Adds to a tool what every tool has, so that the tool's own file need not define it: a preview of the change for tools
 * that change something in the PCE, and their requests, and a limited client for callers who read only inside their
 * scopes. The list of tools and the build both use this function, so that
 * a built tool is the same as one from the sources.
 */
export const completeTool = (tool: AnyTool): AnyTool => limitReads(withPlan(withPreview(tool)))
