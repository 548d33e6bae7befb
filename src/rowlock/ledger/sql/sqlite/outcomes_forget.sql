-- The window begins anew.
DELETE FROM flow_outcomes WHERE flow_name = :flow
