import { ToolError } from '../../schemas/errors.js'
import type { IngressService } from '../../schemas/pce/rule-set.js'
import type { PolicyLookups } from '../inventory/policy-lookups.js'
import { resolveIngressServices, toWireServices, type ServiceReferences } from '../drafts/resolve-services.js'

/** The services of the deny rule as it is sent. Throws invalid_deny_service for whatever is wrong with them, with the `reason`. */
export async function resolveDenyServices(lookups: PolicyLookups, asked: ServiceReferences): Promise<IngressService[]> {
  try {
    return toWireServices(await resolveIngressServices(lookups, asked, { deny: true }))
  } catch (error) {
    if (!(error instanceof ToolError)) throw error
    const text = error.message.replace(/^ingress_services: /u, '')
    throw new ToolError('invalid_deny_service', `deny_service: ${text} Nothing was written.`, {
      ...error.details,
      ...(error.code !== 'invalid_ingress_services' && { reason: error.code }),
    })
  }
}
