/* SPDX-License-Identifier: MIT */
/* The route of a relay: templates, headers, rules, lanes and envelopes; rules on failures. */
#include "config_text.h"
#include "suite.h"

OB_TEST(a_destination_names_fields_that_exist)
{
	config_bad(RELAY("route: { destination: 'a.{evnt_type}' }"),
		   "c.yaml:5:27: relays[0].route.destination: no field '{evnt_type}'; did you mean "
		   "'{event_type}'?\n");
	config_bad(RELAY("route: { destination: 'a.{payload}' }"),
		   "c.yaml:5:27: relays[0].route.destination: no field '{payload}'\n");
	config_bad(RELAY("route: { destination: 'a.{event_type' }"),
		   "c.yaml:5:27: relays[0].route.destination: a '{' without its '}'; doubled it "
		   "stands "
		   "for itself\n");
	config_bad(RELAY("route: { destination: 'a}' }"),
		   "c.yaml:5:27: relays[0].route.destination: a '}' without its '{'; doubled it "
		   "stands "
		   "for itself\n");
	config_bad(RELAY("route: { destination: '{target}}' }"),
		   "c.yaml:5:27: relays[0].route.destination: a '}' without its '{'; doubled it "
		   "stands "
		   "for itself\n");
	config_bad(RELAY("route: { destination: '' }"),
		   "c.yaml:5:27: relays[0].route.destination: must not be empty\n");
}
OB_TEST_END

OB_SUITE("config route", a_destination_names_fields_that_exist)
