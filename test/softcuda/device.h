/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices: how many, what they can do.  Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_DEVICE_H
#define SOFTCUDA_DEVICE_H

#include <stdbool.h>

#include "test/softcuda/abi.h"

#define DEVICE_MAX 8

bool device_valid(CUdevice dev);
int device_attribute(CUdevice_attribute attr, CUdevice dev);

#endif
