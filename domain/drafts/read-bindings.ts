import { PceApiError } from '../../pce-client/index.js'
import type { ServiceBinding, VirtualService } from '../../schemas/pce/virtual-service.js'
import type { ToolContext } from '../call.js'
import { pickEvery } from '../inventory/fetch-every.js'
import { toActiveHref } from '../inventory/parse-href.js'

/**
 * Reads the bindings of a virtual service. Bindings have no draft and refer to the active virtual service (P23), so a
 * virtual service that was never provisioned has none.
 *
 * @throws the errors of the PCE client, except if this PCE does not know bindings at all.
 */
export async function readBindings(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  { href }: Pick<VirtualService, 'href'>,
): Promise<ServiceBinding[]> {
  const wanted = toActiveHref(href)
  try {
    // The PCE's own filter is not used, because it is not documented which form of href it compares.
    return await pickEvery({ api: pce.serviceBindings, params: {}, signal }, (binding: ServiceBinding) => {
      const hrefs = [binding.bound_service.href, binding.virtual_service?.href]
      return hrefs.some((own) => own !== undefined && toActiveHref(own) === wanted) ? binding : undefined
    })
  } catch (error) {
    if (!(error instanceof PceApiError) || error.status !== 404) throw error
    return []
  }
}
